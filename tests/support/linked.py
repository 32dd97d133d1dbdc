"""Both ends of a connection in one process: a server's transport, and the client."""

import os

from colibri.server.transport import Stream


class Peer:
    """The client's end of `linked`."""

    def __init__(self, in_fd: int, out_fd: int) -> None:
        self._reader = os.fdopen(in_fd, "rb")
        self._out_fd = out_fd

    def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        while data:
            data = data[os.write(self._out_fd, data) :]

    def receive(self) -> bytes:
        """The next line without its newline; b"" at the end."""
        return self._reader.readline().rstrip(b"\n")

    def hang_up(self) -> None:
        """End the server's input; its answers can still be read."""
        if self._out_fd >= 0:
            os.close(self._out_fd)
            self._out_fd = -1

    def close(self) -> None:
        """Close both directions."""
        self.hang_up()
        self._reader.close()


def linked() -> tuple[Stream, Peer]:
    """A server's transport and the client that talks to it, in one process."""
    to_server = os.pipe()
    to_client = os.pipe()
    return Stream(to_server[0], to_client[1]), Peer(to_client[0], to_server[1])
