"""Keeps Python's garbage collector from stopping the screen."""

import gc

THRESHOLDS = (2_000, 10, 100)
"""Net allocations until the youngest objects are looked at, and how many such looks make one at the older ones."""


def calm_garbage_collector() -> None:
    """Take what exists now out of all later collections, and make full ones rare. To be called when all is loaded.

    A full collection walks through every object: a hundred milliseconds in which no key is answered, and with Python's
    own thresholds twice a second under a flood.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
