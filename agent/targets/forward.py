"""Ports of the target's loopback interface, reached through ports of ours that outlive any connection."""

import asyncio
import contextlib

import asyncssh

from agent.targets.link import Link

_CHUNK = 1 << 16
_ADMINISTRATIVELY_PROHIBITED = 1


class Forwards:
    """One local listener for each forwarded port. While the host is out of reach, connections are closed at once."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._servers: dict[int, asyncio.Server] = {}
        self._making = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def port(self, remote: int) -> int:
        """The local port that stands for a port of the target; the same whenever it is asked for."""
        async with self._making:
            if remote not in self._servers:

                def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                    task = asyncio.create_task(self._carry(remote, reader, writer), name=f"forward {remote}")
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

                self._servers[remote] = await asyncio.start_server(accept, "127.0.0.1", 0)
            port: int = self._servers[remote].sockets[0].getsockname()[1]
            return port

    async def allowed(self, remote: int) -> bool:
        """Whether the target's sshd forwards ports at all; that nothing listens there is no obstacle."""
        wire = await self._link.wire()
        try:
            _, writer = await wire.connection.open_connection("127.0.0.1", remote)
        except asyncssh.ChannelOpenError as error:
            return error.code != _ADMINISTRATIVELY_PROHIBITED
        writer.close()
        return True

    async def close(self) -> None:
        """Close every listener and connection."""
        for server in self._servers.values():
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry(self, remote: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            wire = self._link.now()
            if wire is None:
                return
            # A refused or broken channel is a connection that closes: what its user sees of a local port too.
            with contextlib.suppress(asyncssh.Error, OSError):
                there_reader, there_writer = await wire.connection.open_connection("127.0.0.1", remote)
                try:
                    await asyncio.gather(_pump(reader, there_writer), _pump(there_reader, writer))
                finally:
                    there_writer.close()
        finally:
            writer.close()


async def _pump(
    reader: "asyncio.StreamReader | asyncssh.SSHReader[bytes]",
    writer: "asyncio.StreamWriter | asyncssh.SSHWriter[bytes]",
) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
