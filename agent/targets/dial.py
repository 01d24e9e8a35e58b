"""Opens an SSH connection the way `~/.ssh/config` says, but never to a host whose key is not known."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from agent.ports import TargetUnreachable, TargetUnusable
from agent.targets.hostkey import HostKeyUnknown, own_known_hosts
from agent.text import one_line

CONNECT_LIMIT_S = 15.0
KEEPALIVE_MISSES = 3
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_KNOWN_HOSTS_OF_ALL = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialling:
    """Where to, and how: `host` is a name of ~/.ssh/config or [USER@]HOST[:PORT]; `config` stands in for that file."""

    host: str
    config: Path | None = None
    keepalive_s: float = 5.0
    connect_limit_s: float = CONNECT_LIMIT_S


async def dial(to: Dialling) -> asyncssh.SSHClientConnection:
    """A connection that is logged in.

    Raises TargetUnreachable for what may pass (no route, no answer, no login), HostKeyUnknown, and else TargetUnusable:
    a changed host key, a configuration that cannot be read.
    """
    return await _hop(to, to.host, None)


async def _hop(to: Dialling, name: str, via: asyncssh.SSHClientConnection | None) -> asyncssh.SSHClientConnection:
    shown = one_line(name)
    try:
        options = await _options(to, name)
        known = _known_hosts(options, shown)
        if via is None and isinstance(options.tunnel, str):
            for jump in options.tunnel.split(","):
                via = await _hop(to, jump.strip(), via)
    except asyncssh.ConfigParseError as error:
        hint = "asyncssh reads fewer `Match` conditions than ssh does; put them last or name the host's address"
        raise TargetUnusable(f"cannot read the SSH configuration: {one_line(str(error))}", hint) from error
    except (ValueError, OSError) as error:
        hint = f"`ssh {shown}` must work without a question; a key with a passphrase has to be in the agent: ssh-add"
        raise TargetUnusable(f"cannot prepare a connection to {shown}: {one_line(str(error))}", hint) from error
    try:
        return await _connect(options, known, shown, via)
    except TargetUnusable:
        if via is not None:
            via.abort()
        raise


async def _options(to: Dialling, name: str) -> asyncssh.SSHClientConnectionOptions:
    user, _, rest = name.rpartition("@")
    host, colon, port = rest.rpartition(":")
    where: dict[str, Any] = {"host": rest}
    if colon and port.isdigit():
        where = {"host": host, "port": int(port)}
    if user:
        where["username"] = user
    # Without a word asyncssh's options read no file at all; () is the user's own.
    where["config"] = () if to.config is None else [str(to.config)]
    options: asyncssh.SSHClientConnectionOptions = await asyncssh.SSHClientConnectionOptions.construct(
        **where,
        agent_forwarding=False,
        x11_forwarding=False,
        env=None,
        send_env=None,
        connect_timeout=to.connect_limit_s,
        login_timeout=to.connect_limit_s,
        keepalive_interval=to.keepalive_s,
        keepalive_count_max=KEEPALIVE_MISSES,
        utf8_decode_errors="replace",
    )
    return options


def _known_hosts(options: asyncssh.SSHClientConnectionOptions, shown: str) -> asyncssh.SSHKnownHosts:
    named = options.known_hosts
    if named is None:
        hint = "remove `UserKnownHostsFile none`; tunebot talks to no host whose key it cannot check"
        raise TargetUnusable(f"the SSH configuration turns the checking of the key of {shown} off", hint)
    users = named if isinstance(named, list) and named else _KNOWN_HOSTS
    files = [Path(str(file)).expanduser() for file in (*users, *_KNOWN_HOSTS_OF_ALL, own_known_hosts())]
    return asyncssh.read_known_hosts([str(file) for file in files if file.is_file()])


async def _connect(
    options: asyncssh.SSHClientConnectionOptions,
    known: asyncssh.SSHKnownHosts,
    shown: str,
    via: asyncssh.SSHClientConnection | None,
) -> asyncssh.SSHClientConnection:
    offered = _Offered()
    try:
        connection = await asyncssh.connect(
            options.orig_host,
            options=options,
            config=None,
            known_hosts=known,
            tunnel=via,
            client_factory=lambda: offered,
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise _about_key(offered, known, shown, str(error)) from error
    except asyncssh.KeyExchangeFailed as error:
        hint = "where its keys were changed, that is a changed host key: ask its owner, then remove the old ones"
        message = f"no key that is known for {shown} is offered by it: {one_line(str(error))}"
        raise TargetUnusable(message, hint) from error
    except asyncssh.PermissionDenied as error:
        hint = f"`ssh {shown}` must work without a password: is the key in ~/.ssh or in the agent (ssh-add -l)?"
        raise TargetUnreachable(f"{shown} does not let {one_line(options.username)} in", hint) from error
    except TimeoutError as error:
        raise TargetUnreachable(f"{shown} gave no answer within {options.connect_timeout:.0f} s", _HINT) from error
    except (asyncssh.Error, OSError) as error:
        raise TargetUnreachable(f"cannot reach {shown}: {one_line(_words(error))}", _HINT) from error
    if via is not None:
        connection.set_tunnel(via)
    return connection


def _words(error: Exception) -> str:
    # asyncio says "Connect call failed" for every reason.
    plain = isinstance(error, OSError) and error.errno and error.errno > 0
    return os.strerror(error.errno) if plain else str(error)  # type: ignore[attr-defined]


_HINT = "is it up, and does `ssh` to it work from here?"


@dataclass
class _Offered(asyncssh.SSHClient):
    """Keeps the host key that was offered and is not among the known ones. It is never accepted."""

    key: asyncssh.SSHKey | None = None
    where: tuple[str, str, int | None] = field(default=("", "", None))

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.key, self.where = key, (host, addr, port if port != 22 else None)
        return False


def _about_key(offered: _Offered, known: asyncssh.SSHKnownHosts, shown: str, error: str) -> TargetUnusable:
    if offered.key is None:
        return TargetUnusable(f"the host key of {shown} is refused: {one_line(error)}", "ask the owner of the host")
    host, _, port = offered.where
    entry = one_line(f"[{host}]:{port}" if port else host)
    before = known.match(*offered.where)[0]
    if not before:
        return HostKeyUnknown(shown, entry, offered.key)
    now, *keys = (f"{key.algorithm.decode()} {key.get_fingerprint()}" for key in (offered.key, *before))
    own = own_known_hosts()
    ours = own.is_file() and asyncssh.read_known_hosts(str(own)).match(*offered.where)[0]
    hint = (
        "somebody may be listening in, or the host was installed anew. Ask its owner; "
        f"only if the new key is right: ssh-keygen -R '{entry}'" + (f" -f '{own}'" if ours else "")
    )
    return TargetUnusable(f"THE HOST KEY OF {shown} HAS CHANGED: it shows {now}, known is {', '.join(keys)}", hint)
