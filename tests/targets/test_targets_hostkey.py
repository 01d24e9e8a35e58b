"""Hosts whose key nobody knows yet: a person is asked, and what was taken is remembered."""

import asyncio
import io
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.hostkeys import ask
from agent.ports import TargetUnusable
from agent.targets.dial import dial
from agent.targets.hostkey import HostKeyUnknown, own_known_hosts, remember
from tests.sshd import Sshd, start_sshd


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """A host of which no known_hosts file knows."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    sshd = start_sshd(tmp_path / "sshd")
    sshd.known_hosts.write_text("")
    yield sshd
    sshd.stop()


async def unknown(sshd: Sshd) -> HostKeyUnknown:
    with pytest.raises(HostKeyUnknown, match="the host key of box is not known: ssh-ed25519 SHA256:") as caught:
        await dial(sshd.dialling())
    return caught.value


async def test_a_key_that_was_taken_is_known_from_then_on(stranger: Sshd) -> None:
    error = await unknown(stranger)
    assert "ssh_host_ed25519_key.pub" in error.compare and error.compare in error.hint
    assert "tunebot doctor ssh:box" in error.hint
    remember(error)
    (await dial(stranger.dialling())).close()
    own = own_known_hosts()
    assert own.read_text().startswith(f"[127.0.0.1]:{stranger.port} ssh-ed25519 AAAA")
    assert own.stat().st_mode & 0o777 == 0o600
    known = subprocess.run(["ssh-keygen", "-F", f"[127.0.0.1]:{stranger.port}", "-f", str(own)], capture_output=True)
    assert known.returncode == 0  # OpenSSH reads it too


async def test_a_key_that_changed_after_it_was_taken_is_a_hard_stop(stranger: Sshd) -> None:
    remember(await unknown(stranger))
    stranger.stop()
    stranger.new_host_key()
    stranger.start()
    with pytest.raises(TargetUnusable, match="THE HOST KEY OF box HAS CHANGED") as caught:
        await dial(stranger.dialling())
    assert not isinstance(caught.value, HostKeyUnknown)
    assert f"-f '{own_known_hosts()}'" in caught.value.hint


async def test_another_key_is_appended_to_whatever_is_there(stranger: Sshd) -> None:
    error = await unknown(stranger)
    own = own_known_hosts()
    own.parent.mkdir(parents=True)
    own.write_text("elsewhere ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJb3vJ0XKc4nQ6tM0q6XGKk6f6qS4m8rjZ8o2mYy0n1a")
    own.chmod(0o644)
    remember(error)
    assert len(own.read_text().splitlines()) == 2
    assert own.stat().st_mode & 0o777 == 0o600
    own.unlink()
    own.mkdir()
    with pytest.raises(TargetUnusable, match="cannot write"):
        remember(error)


async def test_only_yes_is_yes(stranger: Sshd) -> None:
    error = await unknown(stranger)
    for words, taken in {"yes\n": True, " YES \n": True, "y\n": False, "\n": False, "no\n": False, "": False}.items():
        shown = Terminal()
        assert ask(error, Terminal(words), shown) is taken
        assert "SHA256:" in shown.getvalue() and "yes/no [no]" in shown.getvalue()
    for stdin, stderr in ((io.StringIO("yes\n"), Terminal()), (Terminal("yes\n"), io.StringIO())):
        assert not ask(error, stdin, stderr)
        assert not stderr.getvalue()


def home_of(sshd: Sshd, tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "config").write_text(sshd.config.read_text())
    return {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(tmp_path / "config")}


DOCTOR = (sys.executable, "-m", "agent.cli", "doctor", "ssh:box")


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("no", 3)])
async def test_the_doctor_asks_the_person_at_a_terminal(stranger: Sshd, tmp_path: Path, answer: str, code: int) -> None:
    env = home_of(stranger, tmp_path)
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(*DOCTOR, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    shown = await asyncio.to_thread(_everything, ours)
    assert (await process.wait(), own_known_hosts().exists()) == (code, code == 0), shown
    assert "Remember this key" in shown and "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" in shown


def _everything(fd: int) -> str:
    data = b""
    try:
        while chunk := os.read(fd, 4096):
            data += chunk
    except OSError:  # the terminal is gone with its last program
        pass
    return data.decode()


async def test_without_a_terminal_it_is_refused(stranger: Sshd, tmp_path: Path) -> None:
    env = home_of(stranger, tmp_path)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*DOCTOR, env=env, stdin=pipe, stdout=pipe, stderr=pipe)
    out, err = await process.communicate(b"yes\n")
    assert process.returncode == 3 and b"is not known" in out and b"Remember" not in out + err
    assert not own_known_hosts().exists()
