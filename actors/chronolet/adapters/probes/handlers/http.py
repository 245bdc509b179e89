"""HTTP GET probes on the loop: connect, send a request, read the response, follow redirects to the same host.

Input: `HttpTarget`. Output: a `Reading`. Next: the prober's worker. Corresponds to pkg/probe/http/http.go and
request.go. Each request has its own connection, and certificates are not verified. Errors are failures, except for some
of this machine's own (see `dial.judged`).

    dialling -> (TLS hand-shake) -> sending -> reading -> redirected: dialling again | ended
"""

from __future__ import annotations

import functools
import re
import socket
import ssl

from chronolet.adapters.http import texts
from chronolet.adapters.probes.handlers.dial import Dial, closed, judged
from chronolet.adapters.probes.handlers.http_response import Malformed, ResponseParser
from chronolet.adapters.probes.handlers.loop_attempt import Done, LoopAttempt
from chronolet.adapters.probes.handlers.name_lookup import NameLookup
from chronolet.adapters.probes.scheduling.loop import READABLE, WRITABLE, Loop
from chronolet.ports.pods.probes import HttpTarget, May
from chronolet.ports.pods.requests import Request

USER_AGENT = f"kube-probe/{texts.VERSION}"

_READ = 16 * 1024
_READS_PER_TURN = 8
"""After this many reads, other attempts get a turn, because a server may send forever."""
_IN_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"


class HttpAttempt(LoopAttempt):
    """One GET request with all its redirects."""

    def __init__(
        self, loop: Loop, names: NameLookup, target: HttpTarget, timeout_seconds: float, done: Done, *, may: May
    ) -> None:
        super().__init__(loop, timeout_seconds, done, may)
        self._names = names
        self._request = target.request
        self._requests = 0
        self._raw: socket.socket | None = None
        self._secured = False
        self._unsent = b""
        self._ask()

    # -- connecting --------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        self._requests += 1
        self._answer = ResponseParser()
        self._secured = self._request.scheme == "http"
        self._dial = Dial(self._loop, connected=self._connected, failed=self._not_connected)
        try:
            self._unsent = head(self._request)
        except Malformed as error:
            self._fail(str(error))
            return
        if not self._is_over():
            self._dial.begin(self._names, self._request.host, self._request.port)

    def _connected(self, raw: socket.socket) -> None:
        if not self._secured:
            self._loop.unwatch(raw.fileno())  # the TLS wrapper takes over the descriptor
            name = self._request.host if not _is_address(self._request.host) else None
            try:
                raw = _tls().wrap_socket(raw, do_handshake_on_connect=False, server_hostname=name)
            except (OSError, ValueError) as error:  # already disconnected, or the name is not valid in TLS
                closed(raw)
                self._fail(self._broken(error) if isinstance(error, OSError) else f"tls: {error}")
                return
        self._raw = raw
        if not self._is_over():
            self._proceed()

    def _not_connected(self, error: OSError) -> None:
        why = texts.dial_failed(self._request.host, self._request.port, error)
        self._end(judged(error), texts.failed(self._request, why), timed_out=isinstance(error, TimeoutError))

    # -- on the connection -------------------------------------------------------------------------------------------

    def _proceed(self) -> None:
        """Advance as far as possible without blocking."""
        raw = self._raw
        if raw is None:
            return
        try:
            self._advance(raw)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError) as wait:
            wants_to_write = isinstance(wait, ssl.SSLWantWriteError) or (
                isinstance(wait, BlockingIOError) and self._unsent
            )
            self._loop.watch(raw.fileno(), WRITABLE if wants_to_write else READABLE, self._proceed)
        except (OSError, Malformed) as error:
            self._fail(self._broken(error))

    def _advance(self, raw: socket.socket) -> None:
        if not self._secured:
            self._shake_hands(raw)
        if self._unsent:
            self._unsent = self._unsent[raw.send(self._unsent) :]
            self._loop.watch(raw.fileno(), WRITABLE if self._unsent else READABLE, self._proceed)
        elif self._read(raw):
            self._answered()

    def _shake_hands(self, raw: socket.socket) -> None:
        if isinstance(raw, ssl.SSLSocket):
            raw.do_handshake()
        self._secured = True

    def _read(self, raw: socket.socket) -> bool:
        """Read a bounded amount of the response and return whether it is complete. If the bound is reached first,
        schedule another read.
        """
        for _ in range(_READS_PER_TURN):
            data = raw.recv(_READ)
            if data:
                self._answer.feed(data)
            else:
                self._answer.end()
            if self._answer.complete:
                return True
        self._loop.soon(self._proceed)  # data buffered by TLS does not make the descriptor readable
        return False

    def _broken(self, error: OSError | Malformed) -> str:
        if isinstance(error, Malformed):
            return str(error)
        if isinstance(error, ssl.SSLError):
            return _tls_error(error)
        what = "write" if self._unsent else "read"
        where = texts.address(self._request.host, self._request.port)
        return f"{what} tcp {where}: {what}: {str(error.strerror or error).lower()}"

    # -- judging the response ----------------------------------------------------------------------------------------

    def _answered(self) -> None:
        answer = self._answer
        try:
            is_redirect = answer.status in texts.REDIRECTS
            elsewhere = texts.followed(self._request, answer.location) if is_redirect else None
        except texts.BadLocation as error:
            self._fail(str(error))
            return
        if elsewhere is None:
            self._judge(answer)
        elif self._requests == texts.MOST_REQUESTS:
            self._fail(texts.TOO_MANY)
        else:
            self._release()
            self._request = elsewhere
            self._ask()

    def _judge(self, answer: ResponseParser) -> None:
        body = answer.body.decode("utf-8", "replace")
        if 200 <= answer.status < 300:  # noqa: PLR2004
            self._end("success", body, answer.status)
        elif 300 <= answer.status < 400:  # noqa: PLR2004
            self._end("warning", f"Probe terminated redirects, Response body: {body}", answer.status)
        else:
            self._end("failure", f"HTTP probe failed with statuscode: {answer.status}", answer.status)

    def _fail(self, why: str) -> None:
        self._end("failure", texts.failed(self._request, why))

    def _late_text(self) -> str:
        return texts.failed(self._request, _IN_BODY if self._answer.begun else texts.TIMED_OUT)

    def _release(self) -> None:
        self._dial.abandon()
        raw, self._raw = self._raw, None
        if raw is not None:
            self._loop.unwatch(raw.fileno())
            closed(raw)


@functools.lru_cache(maxsize=4096)
def head(request: Request) -> bytes:
    """Return the request's bytes. A manifest's Host, User-Agent and Accept replace the defaults; an empty value
    suppresses the User-Agent or Accept header. Raises `Malformed` for invalid header fields.
    """
    for name, value in request.headers:
        if not _FIELD.fullmatch(f"{name}:{value}"):
            raise Malformed(f'net/http: invalid header field name or value for "{name}"')
    given = [(_canonical(name), value) for name, value in request.headers]
    names = {name for name, _ in given}
    lines = [f"GET {texts.target(request.path)} HTTP/1.1"]
    host = next((value for name, value in given if name == "Host" and value), "")
    lines.append(f"Host: {host or texts.address(request.host, request.port)}")
    lines += [
        f"{name}: {value}" for name, value in (("User-Agent", USER_AGENT), ("Accept", "*/*")) if name not in names
    ]
    lines += [f"{name}: {value}" for name, value in given if name not in _OURS or (value and name != "Host")]
    lines.append("Connection: close")
    return "\r\n".join((*lines, "", "")).encode("latin-1", "replace")


_FIELD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*")
_OURS = ("Host", "User-Agent", "Accept", "Connection")


def _canonical(name: str) -> str:
    """Return a header's name as Go spells it."""
    return "-".join(word.capitalize() for word in name.split("-"))


@functools.lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Return the TLS settings. They are created on first use, because this is slow and most pods do not use TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _tls_error(error: ssl.SSLError) -> str:
    if error.reason in texts.NO_TLS:
        return "http: server gave HTTP response to HTTPS client"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "EOF"
    return f"tls: {(error.reason or str(error)).lower().replace('_', ' ')}"
