"""A request of HTTP/1.1 and its response, over a connection that serves no other.

All clients speak through it. It imports nothing, as each hook waits for it; `http.client` takes longer than a hook.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Protocol

    class Stream(Protocol):
        """A connected socket, encrypted or not."""

        def sendall(self, data: bytes, /) -> None:
            """Send all of it."""

        def recv(self, size: int, /) -> bytes:
            """Return what comes next, at most so many bytes; nothing at the end."""


_PIECE = 65_536  # bytes that are read at once
_LONGEST_LINE = 65_536  # bytes of a line in a head
_MOST_LINES = 200
_SUCCESS = 200  # the first status of a response; those below announce another one


def send(
    stream: Stream, method: str, target: str, host: str, headers: Mapping[str, str], content: bytes | None = None
) -> None:
    """Send a request; raise `ValueError` for a target or header that HTTP does not allow."""
    fields = {"Host": host, "Connection": "close", "Accept-Encoding": "identity", **headers}
    if content is not None:
        fields["Content-Length"] = str(len(content))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    if not all(line.isprintable() for line in lines):
        raise ValueError("the head of a request has a line of its own in a field")
    stream.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + (content or b""))


class Response:
    """A response, of which the head has been read; its content comes as it is asked for.

    Raises `ConnectionError` where the connection ends too early, `ValueError` for what is no HTTP.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._ahead = b""
        self.status = 0
        self.headers: dict[str, str] = {}
        while self.status < _SUCCESS:
            self._read_head()

    @property
    def media_type(self) -> str:
        """Return the type of the content, such as `application/json`."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def read(self, most: int = 0) -> bytes:
        """Return the whole content; raise `ValueError` where it is longer than `most` bytes (0: no limit)."""
        pieces: list[bytes] = []
        size = 0
        for piece in self._content_pieces():
            size += len(piece)
            if most and size > most:
                raise ValueError("the answer is too large")
            pieces.append(piece)
        return b"".join(pieces)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the content as they come, without their ends."""
        parts: list[bytes] = []
        for piece in self._content_pieces():
            first, *others = piece.split(b"\n")
            parts.append(first)
            for line in others:
                yield b"".join(parts)
                parts = [line]
        yield b"".join(parts)

    def _read_head(self) -> None:
        """Read status line and headers; raise `ValueError` for anything that is no HTTP."""
        version, _, rest = self._read_line().partition(b" ")
        if not version.startswith(b"HTTP/1."):
            raise ValueError("the answer is no HTTP")
        self.status, self.headers = int(rest[:3]), {}
        for _ in range(_MOST_LINES):
            line = self._read_line().strip().decode("latin-1")
            if not line:
                return
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        raise ValueError("the head of the answer has no end")

    def _content_pieces(self) -> Iterator[bytes]:
        """Yield the content piece by piece: by chunks, by its length, or to the end of the connection."""
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            while size := int(self._read_line().partition(b";")[0], 16):
                yield from self._read_exactly(size)
                self._read_line()
            while self._read_line().strip():
                pass  # fields behind the content
        elif (length := self.headers.get("content-length")) is not None:
            yield from self._read_exactly(int(length))
        else:
            while piece := self._read_some(_PIECE):
                yield piece

    def _read_exactly(self, size: int) -> Iterator[bytes]:
        """Yield the next `size` bytes in pieces; raise `ConnectionError` where the connection ends before."""
        while size > 0:
            piece = self._read_some(size)
            if not piece:
                raise ConnectionError("the answer broke off")
            size -= len(piece)
            yield piece

    def _read_line(self) -> bytes:
        """Return the next line of the head without its end; raise `ValueError` for a line that is too long."""
        while b"\n" not in self._ahead:
            if len(self._ahead) > _LONGEST_LINE:
                raise ValueError("a line in the head of the answer has no end")
            piece = self._stream.recv(_PIECE)
            if not piece:
                raise ConnectionError("the connection ended before the answer")
            self._ahead += piece
        line, _, self._ahead = self._ahead.partition(b"\n")
        return line

    def _read_some(self, most: int) -> bytes:
        """Return between 1 and `most` of the next bytes; no bytes at the end of the connection."""
        if not self._ahead:
            return self._stream.recv(min(most, _PIECE))
        piece, self._ahead = self._ahead[:most], self._ahead[most:]
        return piece
