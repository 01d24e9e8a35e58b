"""The frame around a start of the simulated server: launch and exit in the ledger, the silence of its imports."""

import logging
import os
import sys
from pathlib import Path
from types import TracebackType

from agent.sim.procs import append, pass_time, stamp, start_time, write_all
from agent.sim.venvs import load_site

KEPT_ENV = ("NCCL_", "SGLANG_", "CUDA_", "TORCH_", "TUNEBOT_")


class launched:
    """Context of one start: on entry it says that all this is simulated, on exit it records the exit code."""

    def __enter__(self) -> None:
        root, environment, world = load_site(Path(sys.prefix))
        self.ledger = root / ".sim" / "ledger.jsonl"
        env = {key: value for key, value in os.environ.items() if key.startswith(KEPT_ENV)}
        append(
            self.ledger,
            "launch",
            argv=sys.argv[1:],
            env=env,
            launch_id=env.get("TUNEBOT_LAUNCH_ID"),
            environment=environment,
            start=start_time("self"),
        )
        write_all(2, f"{stamp()} SIMULATED server on a simulated host (world {world.name}): no GPU, no model\n")
        logging.basicConfig(format="[%(asctime)s] %(message)s", datefmt="%Y-%m-%d %H:%M:%S", level=logging.INFO)
        pass_time(self.ledger, "import", world.seconds("import"))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        code: object = 0 if error is None else 1
        if isinstance(error, SystemExit):
            code = error.code or 0
        elif isinstance(error, KeyboardInterrupt):
            code = -2
        append(self.ledger, "exit", code=code)
