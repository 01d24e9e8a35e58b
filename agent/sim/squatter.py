"""A process of somebody else that holds memory of a GPU of a simulated host, until it is killed.

`python -m agent.sim.squatter ROOT GPU MIB`
"""

import signal
import sys

from agent.sim.procs import write_gpu_state


def main() -> None:
    """Entry; arguments: root of the host, index of the GPU, MiB."""
    root, gpu, mib = sys.argv[1:]
    write_gpu_state(f"{root}/.sim/gpu", int(gpu), int(mib), launcher=0)
    sys.stdout.write("holds\n")
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    main()
