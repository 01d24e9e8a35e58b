"""What every Python of a simulated host imports as it starts: it answers the all-reduce benchmark, which needs GPUs.

A `.pth` file imports it, so it does next to nothing for all other programs.
"""

import sys

MARK = "tunebot nccl-allreduce"
"""What the first line of the benchmark's text says; it comes as `python -c TEXT --ranks N SIZE...`."""

if len(sys.orig_argv) > 2 and sys.orig_argv[1] == "-c" and MARK in sys.orig_argv[2][:200]:
    from agent.sim.collective import answer

    answer(sys.orig_argv[3:])
