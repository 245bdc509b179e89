"""Parse one HTTP/1.x response without I/O.

Input: bytes as they arrive, and the end of the stream. Output: status, redirect, the beginning of the body. Next:
`http`. Corresponds to Go's net/http/response.go and transfer.go, whose error messages are used.

    head -> body by length | by chunks | to the end of the connection -> complete
    an interim response (1xx) goes back to head
"""

from __future__ import annotations

import re
from typing import Literal

from chronolet.ports.pods.probes import OUTPUT_LIMIT

HEAD_LIMIT = 256 * 1024
"""Maximum size of all heads of a response together. Go accepts 10 MiB; no healthy server sends that much."""
_CHUNK_LINE_LIMIT = 4096
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})(?: [^\r\n]*)?$")
_LINE_END = re.compile(rb"\r?\n")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_NAMES = frozenset((b"location", b"transfer-encoding", b"content-length"))
_NO_BODY = (204, 304)
_HEX = re.compile(rb"[0-9a-fA-F]+")
_MOST_HEX_DIGITS = 16
_LONGEST = 2**63 - 1
_MOST_DIGITS = len(str(_LONGEST))
_SHOWN = 80
_BROKEN = "net/http: HTTP/1.x transport connection broken"


class Malformed(Exception):  # noqa: N818 - an expected server error
    """The response is not HTTP, or is too large. The message is a single line."""


class ResponseParser:
    """Parses a response incrementally, until it is `complete`. `body` is decoded and truncated; once it reaches its
    maximum size, the response counts as complete.
    """

    def __init__(self) -> None:
        self.status = 0
        self.location = ""
        self.complete = False
        self._body = bytearray()
        self._rest = bytearray()
        self._searched = 0
        self._first_line_ok = False
        self._read = 0
        self._framing: Literal["head", "length", "chunk line", "chunk", "chunk end", "to the end"] = "head"
        self._left = 0

    @property
    def body(self) -> bytes:
        """The body received so far, up to its maximum size."""
        return bytes(self._body)

    @property
    def begun(self) -> bool:
        """Whether the head is complete."""
        return self._framing != "head"

    def feed(self, data: bytes) -> None:
        """Process the next bytes. Raises `Malformed`."""
        self._rest += data
        while not self.complete and self._step():
            pass

    def end(self) -> None:
        """Process the end of the connection. Raises `Malformed` if the response was not complete."""
        if self.complete:
            return
        if self._framing == "to the end":
            self.complete = True
        elif self._framing == "head":
            raise Malformed("unexpected EOF" if self._rest or self._read else "EOF")
        else:
            raise Malformed("unexpected EOF")

    def _step(self) -> bool:
        """Parse the next part; return False if more bytes are needed."""
        match self._framing:
            case "head":
                return self._head()
            case "chunk line":
                return self._chunk_line()
            case "chunk end":
                return self._chunk_end()
            case _:
                return self._content()

    # -- head --------------------------------------------------------------------------------------------------------

    def _head(self) -> bool:
        # The end of the head may begin with the last three bytes of the previous search.
        end = _HEAD_END.search(self._rest, max(self._searched - 3, 0))
        size = len(self._rest) if end is None else end.end()
        if self._read + size > HEAD_LIMIT:
            raise Malformed(f"net/http: server response headers exceeded {HEAD_LIMIT} bytes; aborted")
        if end is None:
            self._check_first_line()
            self._searched = size
            return False
        lines = _LINE_END.split(bytes(self._rest[: end.start()]))
        self._take(size)
        self._read += size
        self._searched, self._first_line_ok = 0, False
        self.status = _status(lines[0])
        if self.status >= 200 or self.status == 101:  # noqa: PLR2004 - other statuses below 200 are interim
            self._begin_body(_fields(lines[1:]))
        return True

    def _check_first_line(self) -> None:
        """Raise `Malformed` if the bytes so far cannot be the beginning of a head. Like the search for the end of the
        head, this scans only new bytes, since a server may send bytes one by one.
        """
        if self._first_line_ok:
            return
        end = self._rest.find(b"\n", self._searched)
        if end >= 0:
            _status(bytes(self._rest[:end]).rstrip(b"\r"))
            self._first_line_ok = True
        elif not b"HTTP/1.".startswith(self._rest[:7]):
            _status(bytes(self._rest[:_SHOWN]))

    def _begin_body(self, fields: dict[bytes, bytes]) -> None:
        self.location = fields.get(b"location", b"").decode("latin-1")
        if self.status in _NO_BODY or self.status == 101:  # noqa: PLR2004 - switching protocols
            self._framing, self.complete = "length", True
        elif fields.get(b"transfer-encoding", b"").lower() == b"chunked":
            self._framing = "chunk line"
        elif b"content-length" in fields:
            self._framing, self._left = "length", _length(fields[b"content-length"])
            self.complete = not self._left
        else:
            self._framing = "to the end"

    # -- body --------------------------------------------------------------------------------------------------------

    def _content(self) -> bool:
        if not self._rest:
            return False
        size = len(self._rest) if self._framing == "to the end" else min(self._left, len(self._rest))
        self._body += self._take(size)[: OUTPUT_LIMIT - len(self._body)]
        self._left -= size
        if len(self._body) == OUTPUT_LIMIT or (self._framing == "length" and not self._left):
            self.complete = True
        elif self._framing == "chunk" and not self._left:
            self._framing = "chunk end"
        return True

    def _chunk_line(self) -> bool:
        end = self._rest.find(b"\n", self._searched)
        if (len(self._rest) if end < 0 else end) > _CHUNK_LINE_LIMIT:
            raise Malformed("header line too long")
        if end < 0:
            self._searched = len(self._rest)
            return False
        self._searched = 0
        line = self._take(end + 1)
        self._left = _chunk_length(line.partition(b";")[0].strip())
        self._framing = "chunk"
        self.complete = not self._left  # trailers after the last chunk are ignored
        return True

    def _chunk_end(self) -> bool:
        if len(self._rest) < 2:  # noqa: PLR2004 - CR LF
            return False
        if not self._rest.startswith(b"\r\n"):
            raise Malformed("malformed chunked encoding")
        self._take(2)
        self._framing = "chunk line"
        return True

    def _take(self, size: int) -> bytes:
        """Remove the first `size` bytes and return them."""
        taken = bytes(self._rest[:size])
        del self._rest[:size]
        return taken


def _status(line: bytes) -> int:
    found = _STATUS_LINE.match(line)
    if found is None:
        raise Malformed(f'{_BROKEN}: malformed HTTP response "{_shown(line)}"')
    return int(found[1])


def _fields(lines: list[bytes]) -> dict[bytes, bytes]:
    """Parse the headers in `_NAMES`; if a header occurs several times, the first one wins."""
    found: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon and not line.startswith((b" ", b"\t")):
            raise Malformed(f'{_BROKEN}: malformed MIME header line: "{_shown(line)}"')
        name = name.strip().lower()
        if name in _NAMES:
            found.setdefault(name, value.strip())
    return found


def _length(text: bytes) -> int:
    """Parse a Content-Length, limited to the values that Go accepts."""
    digits = text.lstrip(b"0")
    if not text.isdigit() or len(digits) > _MOST_DIGITS or int(digits or b"0") > _LONGEST:
        raise Malformed(f'{_BROKEN}: bad Content-Length "{_shown(text)}"')
    return int(digits or b"0")


def _chunk_length(text: bytes) -> int:
    if not _HEX.fullmatch(text):
        raise Malformed("invalid byte in chunk length")
    if len(text) > _MOST_HEX_DIGITS:
        raise Malformed("http chunk length too large")
    return int(text, 16)


def _shown(raw: bytes) -> str:
    return raw[:_SHOWN].decode("latin-1").encode("unicode_escape").decode().replace('"', '\\"')
