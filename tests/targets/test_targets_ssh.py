"""What only a host over SSH can do: get out of reach, have another key, talk too much, allow too little."""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import httpx
import pytest

from agent.ports import CommandResult, LaunchStatus, TargetGone, TargetUnreachable, TargetUnusable
from agent.targets import link
from agent.targets.dial import Dialling
from agent.targets.local import LocalTarget
from agent.targets.ssh import SshTarget
from tests.sshd import Sshd, start_sshd
from tests.targets.kit import PYTHON, SLEEP, lives, log_bytes, printed, serve, until
from tests.targets.test_targets_bytes import awkward

UNKNOWN = LaunchStatus(state="unknown", leader_exit_code=None, processes=())
KEEPALIVE_S = 0.5


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    sshd = start_sshd(tmp_path / "sshd")
    yield sshd
    sshd.stop()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempts to connect anew come soon anyway; the later ones too."""
    monkeypatch.setattr(link, "LONGEST_PAUSE_S", 0.3)


@asynccontextmanager
async def opened(sshd: Sshd, **changes: object) -> AsyncIterator[SshTarget]:
    """A target whose home and work folder lie beside the server's files. Its servers are stopped at the end."""
    home = sshd.root.parent / "home"
    home.mkdir(exist_ok=True)
    to = sshd.dialling(keepalive_s=KEEPALIVE_S)
    target = SshTarget("box", to, workdir=str(home / "work"), env={"HOME": str(home)}, **changes)  # type: ignore[arg-type]
    try:
        yield target
    finally:
        await target.close()
        local = LocalTarget("box", workdir=home / "work")
        for run in (home / "work" / "runs").glob("*"):
            await local.stop(run.name, 0.0)
        await local.close()


async def alive(target: SshTarget) -> bool:
    return (await target.launch_status("l1")).state == "running"


async def test_a_killed_connection_ends_nothing_but_what_ran_over_it(sshd: Sshd, quick: None) -> None:
    told: list[str | None] = []
    async with opened(sshd) as target:
        target.reach.tell(told.append)
        leader = await serve(target, "import time; print('ready', flush=True); time.sleep(600)")
        await printed(target, "ready")
        code = "import os; open('pid', 'w').write(str(os.getpid()))\n" + SLEEP
        task = asyncio.create_task(target.run([*PYTHON, "-c", code], timeout_s=60))
        pid_file = sshd.root.parent / "home" / "pid"
        await until(lambda: pid_file.exists() and pid_file.read_text())
        sshd.signal_connections(signal.SIGKILL)
        assert await task == CommandResult(exit_code=None, output=b"")
        await until(lambda: not lives(int(pid_file.read_text())))
        await target.free_port()  # waits until the host is reached again
        assert told and told[0] and told[-1] is None
        assert (target.reach.up, target.reach.breaks) == (True, 1)
        assert lives(leader.pid) and await alive(target)
        assert await log_bytes(target, "l1", 0) == b"ready\n"


async def test_while_out_of_reach_status_is_unknown_and_reading_says_so(sshd: Sshd, quick: None) -> None:
    async with opened(sshd) as target:
        leader = await serve(target, SLEEP)
        sshd.stop()
        await until(lambda: not target.reach.up)
        assert await target.launch_status("l1") == UNKNOWN
        with pytest.raises(TargetUnreachable, match="box cannot be reached"):
            await log_bytes(target, "l1", 0)
        waiting = asyncio.create_task(target.exists("~/"))
        await asyncio.wait({waiting}, timeout=1.0)
        assert not waiting.done() and lives(leader.pid)
        assert "refused" in target.reach.why
        sshd.start()
        assert await waiting
        assert await alive(target)


async def test_a_frozen_link_is_noticed_within_four_keepalives(sshd: Sshd, quick: None) -> None:
    async with opened(sshd) as target:
        await serve(target, SLEEP)
        sshd.signal_connections(signal.SIGSTOP)
        began = time.monotonic()
        await until(lambda: not target.reach.up)
        assert time.monotonic() - began < 4 * KEEPALIVE_S
        assert Dialling(host="x").keepalive_s * 4 <= 20
        await until(lambda: alive(target))


async def test_a_stop_of_this_process_is_no_frozen_link(sshd: Sshd) -> None:
    async with opened(sshd) as target:
        await target.exists("~/")
        for _ in range(3):
            time.sleep(4 * KEEPALIVE_S)  # the whole loop stands still, as in a sleep of the laptop
            await asyncio.sleep(0.01)
        assert await target.exists("~/")
        assert target.reach.breaks == 0


async def test_a_stop_gives_up_after_a_while_and_says_what_is_left(
    sshd: Sshd, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.targets.ssh._STOP_PATIENCE_S", 0.5)
    async with opened(sshd) as target:
        await serve(target, SLEEP)
        sshd.stop()
        await until(lambda: not target.reach.up)
        with pytest.raises(TargetUnreachable, match="launch l1 may still run there"):
            await target.stop("l1", 1.0)
        sshd.start()
        monkeypatch.setattr("agent.targets.ssh._STOP_PATIENCE_S", 30.0)
        assert (await target.stop("l1", 1.0)).left == ()


async def test_a_start_whose_answer_was_lost_is_found_again(sshd: Sshd, quick: None) -> None:
    """The connection is cut ever later in a start: there is one server in the end, and it is known."""
    async with opened(sshd) as target:
        for step in range(8):
            await target.exists("~/")
            start = asyncio.create_task(serve(target, SLEEP, launch=f"l{step}"))
            await asyncio.wait({start}, timeout=step * 0.03)
            sshd.signal_connections(signal.SIGKILL)
            leader = await start
            await until(lambda: target.reach.up)

            async def found(launch: str = f"l{step}") -> list[int]:
                return [process.pid for process in (await target.launch_status(launch)).processes]

            assert await until(found) == [leader.pid]
            assert (await target.stop(f"l{step}", 5.0)).left == ()


async def test_a_forwarded_port_outlives_the_connection(sshd: Sshd, quick: None) -> None:
    code = (
        "import sys\nfrom http.server import *\n"
        "ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), SimpleHTTPRequestHandler).serve_forever()"
    )
    async with opened(sshd) as target, httpx.AsyncClient(trust_env=False) as http:
        port = await target.free_port()
        url = await target.base_url(port)
        with pytest.raises(httpx.HTTPError):
            await http.get(url)
        await serve(target, code, str(port))
        await until(lambda: target.port_answers(port))
        answers = await asyncio.gather(*(http.get(url) for _ in range(40)))
        assert {answer.status_code for answer in answers} == {200}
        sshd.signal_connections(signal.SIGKILL)
        await until(lambda: not target.reach.up)
        with pytest.raises(httpx.HTTPError):
            await http.get(url)
        await target.exists("~/")
        assert await target.base_url(port) == url
        assert (await http.get(url)).status_code == 200


@pytest.mark.parametrize("sessions", [1, 2])
async def test_thirty_commands_at_a_time_need_one_session(sshd: Sshd, sessions: int) -> None:
    sshd.stop()
    sshd.start(f"MaxSessions {sessions}", "MaxStartups 2")
    async with opened(sshd) as target:
        results = await asyncio.gather(*(target.run(["echo", str(n)], timeout_s=60) for n in range(30)))
    assert [result.output for result in results] == [b"%d\n" % n for n in range(30)]


async def test_an_unknown_host_is_not_talked_to(sshd: Sshd) -> None:
    sshd.known_hosts.write_text("")
    fingerprint = asyncssh.read_public_key(_public(sshd)).get_fingerprint()
    async with opened(sshd) as target:
        with pytest.raises(TargetUnusable, match="is not known: ssh-ed25519 SHA256") as caught:
            await target.host()
    assert fingerprint in str(caught.value) and "ssh box" in caught.value.hint
    assert not isinstance(caught.value, TargetUnreachable)


async def test_a_changed_key_is_a_hard_stop(sshd: Sshd) -> None:
    sshd.stop()
    sshd.new_host_key()
    sshd.start()
    async with opened(sshd) as target:
        with pytest.raises(TargetUnusable, match="THE HOST KEY OF box HAS CHANGED") as caught:
            await target.host()
    assert f"ssh-keygen -R '[127.0.0.1]:{sshd.port}'" in caught.value.hint


async def test_a_key_that_changes_while_we_run_is_a_hard_stop_too(sshd: Sshd, quick: None) -> None:
    async with opened(sshd) as target:
        await serve(target, SLEEP)
        sshd.stop()
        sshd.new_host_key()
        sshd.start()
        for ask in (lambda: target.exists("~/"), lambda: target.launch_status("l1"), lambda: target.stop("l1", 1.0)):
            with pytest.raises(TargetGone, match="HAS CHANGED"):
                await until(ask)


async def test_checking_cannot_be_turned_off(sshd: Sshd) -> None:
    sshd.config.write_text(sshd.config.read_text().replace(str(sshd.known_hosts), "none"))
    async with opened(sshd) as target:
        with pytest.raises(TargetUnusable, match="turns the checking of the key of box off"):
            await target.host()


async def test_what_keeps_us_out_is_said(sshd: Sshd) -> None:
    good = sshd.config.read_text()
    cases = {
        good.replace(str(sshd.port), "1"): "cannot reach box",
        good.replace("127.0.0.1", "no-such-host.invalid"): "cannot reach box",
        good.replace("user_key", "host_key"): "box does not let .* in",
        "Match version x\n" + good: "cannot read the SSH configuration",
    }
    for text, words in cases.items():
        sshd.config.write_text(text)
        async with opened(sshd) as target:
            with pytest.raises(TargetUnusable, match=words) as caught:
                await target.host()
        assert caught.value.hint


async def test_a_host_behind_a_host(sshd: Sshd) -> None:
    good = sshd.config.read_text()
    sshd.config.write_text(good + good.replace("Host box", "Host behind") + "  ProxyJump box\n")
    home = sshd.root.parent
    target = SshTarget("behind", sshd.dialling("behind"), workdir=str(home / "work"), env={"HOME": str(home)})
    assert (await target.run(["echo", "hello"], timeout_s=30)).output == b"hello\n"
    assert len({pid for pid in sshd.connections() if os.getsid(pid)}) >= 2
    await target.close()
    await until(lambda: not sshd.connections())


async def test_our_agent_and_variables_stay_here(sshd: Sshd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    monkeypatch.setenv("LC_OURS", "1")
    sshd.config.write_text(sshd.config.read_text() + "  SendEnv LC_*\n  SetEnv LC_SET=1\n  RequestTTY force\n")
    sshd.stop()
    sshd.start("AcceptEnv LC_*")
    async with opened(sshd) as target:
        output = (await target.run(["env"], timeout_s=30)).output.decode()
        result = await target.run(["tty"], timeout_s=30)
    assert "SSH_AUTH_SOCK" not in output and "LC_OURS" not in output and "LC_SET" not in output
    assert result.output == b"not a tty\n"


async def test_without_python_it_is_said(sshd: Sshd) -> None:
    sshd.stop()
    sshd.start('ForceCommand PATH=/nowhere; echo welcome; eval "$SSH_ORIGINAL_COMMAND"')
    async with opened(sshd) as target:
        with pytest.raises(TargetUnusable, match=r"python3 cannot be started on box \(exit 127\)") as caught:
            await target.host()
    assert "PATH" in caught.value.hint


async def test_only_so_many_gpus_are_used(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.write_text("#!/bin/sh\nfor n in 0 1 2 3; do echo $n, RTX, 12.0, 97887, 580; done\n")
    smi.chmod(0o755)
    async with opened(sshd, path=[str(tmp_path / "bin")], gpus=2) as target:
        assert [gpu.index for gpu in (await target.host()).gpus] == [0, 1]
        command = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"]
        assert (await target.run(command, timeout_s=30)).output == b"0,1\n"
        assert (await target.run(command, timeout_s=30, hide_gpus=True)).output == b"\n"
    async with opened(sshd, path=[str(tmp_path / "bin")], gpus=8) as target:
        with pytest.raises(TargetUnusable, match="should have 8 GPUs and has 4"):
            await target.host()


_NOISE = 'echo welcome; printf "no newline"; echo oops >&2\n'
SHELLS: dict[str, Callable[[Path], None]] = {
    "bash": lambda home: _write(home / ".bashrc", _NOISE),
    "zsh": lambda home: _write(home / ".zshenv", _NOISE),
    "fish": lambda home: _write(home / ".config/fish/config.fish", _NOISE),
    "tcsh": lambda home: _write(home / ".tcshrc", 'echo welcome\nprintf "no newline"\n'),
}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _public(sshd: Sshd) -> Path:
    path = sshd.root / "host_key.pub"
    path.write_bytes(asyncssh.read_private_key(sshd.root / "host_key").export_public_key())
    return path


@pytest.mark.parametrize("shell", SHELLS)
async def test_login_shells_and_their_noise_change_nothing(sshd: Sshd, tmp_path: Path, shell: str) -> None:
    """As sshd does with a login shell: SHELL -c COMMAND, with rc files that print."""
    program = shutil.which(shell)
    if program is None:
        assert not os.environ.get("CI"), f"apt-get install {shell}"
        pytest.skip(f"no {shell}")
    SHELLS[shell](tmp_path / "rc")
    sshd.stop()
    # SHLVL: bash reads its rc file in what sshd starts, and only there.
    sshd.start(f'ForceCommand exec env SHLVL=0 HOME={tmp_path}/rc {program} -c "$SSH_ORIGINAL_COMMAND"')
    words = awkward()
    code = (
        "import os, sys\nenv = [os.environb[b'V%d' % n] for n in range(100)]\n"
        "sys.stdout.buffer.write(b'\\0'.join([*map(os.fsencode, sys.argv[1:]), *env]))"
    )
    async with opened(sshd) as target:
        result = await target.run(
            [*PYTHON, "-c", code, *words], timeout_s=60, env={f"V{n}": word for n, word in enumerate(words)}
        )
        noise = target._link.now()._noise  # type: ignore[union-attr]
    expected = [word.encode("utf-8", "surrogateescape") for word in words]
    assert result.output.split(b"\0") == expected + expected
    assert b"welcome" in noise
