"""Runs a session in a process of its own, without a terminal.

The command that starts it ends well if and only if the session runs and can be attached to. Until both know that, it
does nothing; if either goes away before, neither goes on.
"""

import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from agent.diagnostics import Exit, UserError, keep_fault
from agent.text import one_line

Ready = Callable[[Path], None]

_GO = b"g"
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class _Abandoned(Exception):
    """The command that started the session went away before it knew of it."""


def detach(work: Callable[[Ready], None], announce: Callable[[Path], None]) -> None:
    """Have another process do `work`, and return once that runs.

    `work` calls `ready` with the session's folder once all is prepared, and begins when that returns. `announce` gets
    the folder before. Raises UserError where the session did not begin: then nothing runs. No loop may run here.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _work(work, theirs)
    theirs.close()
    said: dict[str, Any] = {}
    try:
        with ours, ours.makefile("rb") as answer:
            said = json.loads(answer.readline() or b"{}")
            if "folder" not in said:
                raise _failed(said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            announce(Path(said["folder"]))
            # From here on the session may run: nothing comes between that and our exit code.
            signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
            ours.sendall(_GO)
    except UserError:
        raise
    except BaseException:
        # One that is ready sees that nobody is there any more, and takes away what it made.
        if not said:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _failed(said: dict[str, Any], exit_code: int) -> UserError:
    if "error" in said:
        return UserError(said["error"], said["hint"], Exit(said["code"]))
    how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
    return UserError(f"the session did not begin: its process {how}", "nothing runs; try again", Exit.INTERNAL)


def _work(work: Callable[[Ready], None], parent: socket.socket) -> NoReturn:
    """The other process, from its first step to its last."""
    begun: list[Path] = []

    def ready(folder: Path) -> None:
        parent.sendall(json.dumps({"folder": str(folder)}).encode() + b"\n")
        if parent.recv(1) != _GO:
            raise _Abandoned
        begun.append(folder)

    code = Exit.OK
    try:
        _leave_the_terminal()
        work(ready)
    except BaseException as error:  # noqa: BLE001  (nobody is above us: it is told or written down)
        code = error.code if isinstance(error, UserError) else Exit.INTERNAL
        if begun:
            keep_fault(error, begun[0])
        else:
            parent.sendall(json.dumps(_told(error, code)).encode() + b"\n")
    finally:
        os._exit(code)


def _told(error: BaseException, code: Exit) -> dict[str, Any]:
    if isinstance(error, UserError):
        return {"error": str(error), "hint": error.hint, "code": code}
    where = traceback.extract_tb(error.__traceback__)[-1]
    text = one_line(f"a fault in tunebot: {type(error).__name__}: {error}")
    return {"error": text, "hint": f"it happened at {where.filename}:{where.lineno}; nothing runs", "code": code}


def _leave_the_terminal() -> None:
    os.setsid()
    # A handler, not SIG_IGN: what is started from here must not inherit it.
    signal.signal(signal.SIGHUP, lambda *_: None)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    os.close(nowhere)
