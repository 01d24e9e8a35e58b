"""Everything but the screen."""

__version__ = "0.1.0"
