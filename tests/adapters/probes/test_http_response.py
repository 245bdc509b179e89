"""Responses parsed in pieces: the result does not depend on the pieces, and malformed responses are rejected early."""

from __future__ import annotations

import contextlib
import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.adapters.probes.handlers import http_response
from chronolet.adapters.probes.handlers.http_response import HEAD_LIMIT, Malformed, ResponseParser
from chronolet.ports.pods.probes import OUTPUT_LIMIT

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"
TO_THE_END = b"HTTP/1.0 200 OK\r\n\r\nhello"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + PLAIN
BARE_LINES = b"HTTP/1.1 200\nContent-Length: 5\n\nhello"


def read(pieces: list[bytes], *, ends: bool = True) -> ResponseParser:
    answer = ResponseParser()
    for piece in pieces:
        if not answer.complete:
            answer.feed(piece)
    if ends:
        answer.end()
    return answer


@pytest.mark.parametrize("wire", [PLAIN, CHUNKED, TO_THE_END, INTERIM, BARE_LINES])
@given(cuts=st.lists(st.integers(0, 100), max_size=8))
def test_the_result_does_not_depend_on_the_pieces(wire: bytes, cuts: list[int]) -> None:
    marks = sorted({0, len(wire), *(cut % len(wire) for cut in cuts)})
    answer = read([wire[a:b] for a, b in itertools.pairwise(marks)])
    assert (answer.status, answer.body, answer.complete) == (200, b"hello", True)


@pytest.mark.parametrize("wire", [PLAIN, CHUNKED])
def test_a_response_is_complete_before_the_server_closes(wire: bytes) -> None:
    assert read([wire], ends=False).complete


@pytest.mark.parametrize(("length", "kept"), [(10_239, 10_239), (10_240, 10_240), (10_241, 10_240), (10**9, 10_240)])
def test_a_long_body_is_truncated_and_its_rest_not_awaited(length: int, kept: int) -> None:
    answer = read([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length, b"x" * min(length, 20_000)], ends=False)
    assert (answer.complete, len(answer.body)) == (True, kept)
    assert kept <= OUTPUT_LIMIT


@pytest.mark.parametrize("status", [204, 304, 101])
def test_some_responses_have_no_body(status: int) -> None:
    answer = read([b"HTTP/1.1 %d X\r\nContent-Length: 9\r\n\r\n" % status], ends=False)
    assert (answer.complete, answer.status) == (True, status)


def test_the_location_of_a_redirect() -> None:
    answer = read([b"HTTP/1.1 302 Found\r\nLOCATION: /new\r\nContent-Length: 0\r\n\r\n"], ends=False)
    assert (answer.status, answer.location) == (302, "/new")


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", 'malformed HTTP response "SSH-2.0-OpenSSH_9.2'),
        (b"\x00\x01", "malformed HTTP response"),
        (b"HTTP/2.0 200 OK\r\n", "malformed HTTP response"),
        (b"HTTP/1.1 2x0 OK\r\n", "malformed HTTP response"),
        (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", 'malformed MIME header line: "nonsense"'),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 'bad Content-Length "-1"'),
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n", f'bad Content-Length "{"9" * 80}"'),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n", "bad Content-Length"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: \xb2"\x1b\r\n\r\n', r'bad Content-Length "\xb2\"\x1b"'),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 17 + b"\r\n", "http chunk length too large"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\n", "invalid byte in chunk length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\n", "invalid byte in chunk length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "invalid byte in chunk length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "invalid byte in chunk length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 5000, "header line too long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz", "malformed chunked encoding"),
    ],
)
def test_malformed_responses_are_rejected_before_their_end(wire: bytes, message: str) -> None:
    with pytest.raises(Malformed, match=message.replace("\\", "\\\\")):
        read([wire], ends=False)


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (b"", "EOF"),
        (b"HTTP/1.1 2", "unexpected EOF"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "unexpected EOF"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel", "unexpected EOF"),
    ],
)
def test_an_early_end_is_malformed(wire: bytes, message: str) -> None:
    with pytest.raises(Malformed, match=f"^{message}$"):
        read([wire])


@pytest.mark.parametrize("piece", [b"\r\nX: y", b"\r\nX: " + b"x" * 1000, b"\r\n\r\nHTTP/1.1 100 Continue"])
def test_endless_heads_are_rejected(piece: bytes) -> None:
    answer = ResponseParser()
    answer.feed(b"HTTP/1.1 100 Continue")
    fed = 0
    while fed < HEAD_LIMIT - 200_000:
        answer.feed(piece * 100)
        fed += 100 * len(piece)
    assert not answer.begun
    with pytest.raises(Malformed, match="headers exceeded"):
        answer.feed(piece * (HEAD_LIMIT // len(piece)))


PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b"HTTP/1.1 200 OK", b"\r\n", b"\n", b"Content-Length: ", b"Transfer-Encoding: chunked", b"9" * 5_000]
    ),
)


@given(wire=st.lists(PIECES, max_size=12), ends=st.booleans())
def test_any_bytes_are_parsed_or_malformed(wire: list[bytes], ends: bool) -> None:
    with contextlib.suppress(Malformed):
        read([b"HTTP/1.1 200 OK\r\n", *wire], ends=ends)


class Searched(bytearray):
    """A buffer that counts the bytes that were searched."""

    searched = 0

    def find(self, what: Any, start: Any = 0, end: Any = None) -> int:
        self.searched += len(self) - start
        return super().find(what, start, end)


class Pattern:
    """A compiled pattern that adds the bytes it searches to the count of a `Searched` buffer."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern

    def search(self, where: Searched, start: int) -> re.Match[bytes] | None:
        where.searched += len(where) - start
        return self._pattern.search(where, start)


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 ", b"HTTP/1.1 200 OK\r\nX: "])
def test_a_head_of_single_bytes_is_searched_once(start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_response, "_HEAD_END", Pattern(http_response._HEAD_END))
    answer = ResponseParser()
    answer._rest = rest = Searched()
    feed = start + b"x" * 20_000
    for n in range(len(feed)):
        answer.feed(feed[n : n + 1])
    assert not answer.complete
    assert answer._rest is rest
    assert len(feed) <= rest.searched < 8 * len(feed)


def test_a_head_in_one_piece_has_the_same_limit() -> None:
    with pytest.raises(Malformed, match="headers exceeded"):
        read([b"HTTP/1.1 200 OK\r\nX: " + b"x" * HEAD_LIMIT + b"\r\n\r\n"])
