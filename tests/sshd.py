"""A real OpenSSH server on the loopback interface, with keys, a configuration and a known_hosts file of its own."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pytest

from agent.targets import wrapper
from agent.targets.dial import Dialling

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
INSTALL = "apt-get install -y --no-install-recommends openssh-server"


class PortTaken(Exception):
    """sshd ended instead of listening. The message is its log."""


@dataclass
class Sshd:
    """A running server. `config` is what stands in for ~/.ssh/config; in it the host is called `box`."""

    root: Path
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def config(self) -> Path:
        return self.root / "config"

    @property
    def known_hosts(self) -> Path:
        return self.root / "known_hosts"

    def dialling(self, host: str = "box", keepalive_s: float = 5.0) -> Dialling:
        return Dialling(host=host, config=self.config, keepalive_s=keepalive_s)

    def connections(self) -> list[int]:
        """The processes that serve connections, without the helpers and commands that they started."""
        procs = wrapper.snapshot()
        ours = {self.process.pid}
        for proc in sorted(procs.values(), key=lambda proc: proc.start_ticks):
            with contextlib.suppress(OSError):
                if proc.ppid in ours and Path(f"/proc/{proc.pid}/comm").read_text().startswith("sshd"):
                    ours.add(proc.pid)
        return sorted(ours - {self.process.pid})

    def signal_connections(self, signum: int) -> None:
        for pid in self.connections():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)

    def new_host_key(self) -> None:
        """Give the host another key; it is used from the next start on."""
        key = asyncssh.generate_private_key("ssh-ed25519")
        _private(self.root / "host_key", key.export_private_key())

    def stop(self) -> None:
        """End the server and its connections."""
        self.signal_connections(signal.SIGKILL)
        self.process.terminate()
        self.process.wait(timeout=10)

    def start(self, *lines: str) -> None:
        """Start (again) at the port, with more lines of configuration, which win over the usual ones.

        Raises PortTaken.
        """
        assert SSHD
        told = len(self._log())
        (self.root / "sshd_config").write_text("\n".join([*lines, *_config(self.root, self.port)]) + "\n")
        self.process = subprocess.Popen(
            [SSHD, "-D", "-E", str(self.root / "log"), "-f", str(self.root / "sshd_config")], stdin=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as probe:
                # A port that nobody listens on may happen to be connected to itself.
                # Another test's server may have been given it just now.
                if probe.getsockname() != probe.getpeername() and "Server listening" in self._log()[told:]:
                    return
            if self.process.poll() is not None:
                raise PortTaken(self._log()[told:])
            time.sleep(0.02)
        raise AssertionError("sshd did not start")

    def _log(self) -> str:
        log = self.root / "log"
        return log.read_text() if log.exists() else ""


def start_sshd(root: Path, *lines: str) -> Sshd:
    """A server in `root`. Skips the test where there is no sshd, but not in CI."""
    if SSHD is None:
        assert not os.environ.get("CI"), f"no sshd: {INSTALL}"
        pytest.skip(f"no sshd: {INSTALL}")
    root.mkdir(parents=True, exist_ok=True)
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for _ in range(4):
        with contextlib.suppress(PortTaken):
            return _started(root, *lines)
    return _started(root, *lines)


def _started(root: Path, *lines: str) -> Sshd:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (root / "log").unlink(missing_ok=True)
    host, user = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    _private(root / "host_key", host.export_private_key())
    _private(root / "user_key", user.export_private_key())
    (root / "authorized_keys").write_bytes(user.export_public_key())
    (root / "known_hosts").write_text(f"[127.0.0.1]:{port} {host.export_public_key().decode()}")
    (root / "config").write_text(
        f"Host box\n  Hostname 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {root}/user_key\n  IdentitiesOnly yes\n  UserKnownHostsFile {root}/known_hosts\n"
        "  ForwardAgent yes\n"
    )
    sshd = Sshd(root, port, None)  # type: ignore[arg-type]
    sshd.start(*lines)
    return sshd


def _config(root: Path, port: int) -> list[str]:
    return [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {root}/host_key",
        f"AuthorizedKeysFile {root}/authorized_keys",
        f"PidFile {root}/pid",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "UsePAM no",
        "PermitRootLogin prohibit-password",
        "StrictModes no",
        "MaxStartups 100",
        "Subsystem sftp internal-sftp",
    ]


def _private(path: Path, data: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(data)
