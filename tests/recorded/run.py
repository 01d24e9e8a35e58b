"""`make recorded`: the recorded loads of a real SGLang through the live engine; says so where they are not there."""

import sys
from pathlib import Path

import pytest

from .conftest import RECORDED

if __name__ == "__main__":
    if not RECORDED.is_dir():
        print(f"recorded: no recordings in {RECORDED}; nothing is measured")
        sys.exit(0)
    sys.exit(pytest.main(["-q", "-rA", "--no-header", str(Path(__file__).parent)]))
