"""The node's HTTP server: /healthz, /readyz, /metrics, and whatever pages are added.

Input: requests. Output: plain pages. It sleeps in one `select` until somebody asks; each connection has a thread,
which has its client's whole head within a deadline or ends. Next: `http_guard` judges requests, `http_slots` keeps room
for health; `health`, `metrics` make pages. Source: pkg/kubelet/server (the read-only part).
"""

from __future__ import annotations

import errno
import selectors
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader
from socketserver import TCPServer
from types import MappingProxyType
from typing import Any, NamedTuple

import structlog

from chronolet.node.health import Health, Page
from chronolet.node.http.guard import Guard, Refused, Request
from chronolet.node.http.heads import HEAD_SECONDS, WRITE_SECONDS, HeadReader, HeadTooLargeError, shaken
from chronolet.node.http.slots import Lane, Slots, TooManyError
from chronolet.node.settings.values import SettingsError

log = structlog.get_logger("chronolet.http")

_BACKLOG = 128
_STARVED_SECONDS = 0.05
_STARVED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_HEALTH = ("/healthz", "/readyz")
TEXT = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """A page."""

    status: int
    body: bytes
    content_type: str = TEXT
    headers: Mapping[str, str] = MappingProxyType({})


Query = Mapping[str, list[str]]
Show = Callable[[Query], Answer]
"""Makes a page. Called in a thread of its own."""


def health_pages(health: Health) -> dict[str, Show]:
    """/healthz and /readyz, and below them each check by its name, as in /healthz/ping."""
    return {"/healthz": _page(health, "healthz"), "/readyz": _page(health, "readyz")}


def _page(health: Health, page: Page) -> Show:
    def show(query: Query) -> Answer:
        only = query["/"][0] if "/" in query else ""
        report = health.report(page, only)
        if report is None:
            return Answer(404, f"no check named {only}\n".encode())
        if report.good and "verbose" not in query:
            return Answer(200, b"ok")
        return Answer(200 if report.good else 500, report.text(page).encode())

    return show


class HttpServer:
    """Serves pages from threads of its own until `stop`."""

    def __init__(
        self,
        address: str,
        port: int,
        pages: Mapping[str, Show],
        *,
        guard: Guard = Guard(),  # noqa: B008 - an immutable value
        tls: ssl.SSLContext | None = None,
        head_seconds: float = HEAD_SECONDS,
    ) -> None:
        try:
            self._server = _Server(address, port, _Served(pages, guard, tls, head_seconds))
        except OSError as error:
            raise SettingsError(
                f"--address {address} --port {port}: cannot listen there: {error.strerror or error}; "
                "choose another port, or 0 for no HTTP server"
            ) from error
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on, also where 0 was asked for."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more; the port is free afterwards."""
        self._wake.close()
        if self._thread.ident is not None:
            self._thread.join()
        self._server.server_close()
        self._woken.close()

    def _serve(self) -> None:
        # Not serve_forever(): that one wakes twice a second to see whether it should stop.
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while all(key.fileobj is not self._woken for key, _ in selector.select()):
                self._server.handle_request()


class _Served(NamedTuple):
    """What a server was given."""

    pages: Mapping[str, Show]
    guard: Guard
    tls: ssl.SSLContext | None
    head_seconds: float


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    timeout = 0
    request_queue_size = _BACKLOG

    def __init__(self, address: str, port: int, served: _Served) -> None:
        self.served = served
        self.slots = Slots()
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        """Bind without asking DNS for the own name, as the base class would: that may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def get_request(self) -> tuple[Any, Any]:
        """A connection; with TLS its handshake comes later, in its own thread."""
        try:
            connection, client = self.socket.accept()
        except OSError as error:
            if error.errno in _STARVED:
                # The connection stays readable: without a pause this thread would do nothing but ask.
                self.slots.end_oldest()
                time.sleep(_STARVED_SECONDS)
            raise
        if self.served.tls is None:
            return connection, client
        return self.served.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), client

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for each connection. A new one takes the place of the one that has kept us waiting the longest."""
        if not self.slots.enter(request):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError as error:
            log.warning("no thread for a connection", error=str(error))
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Its place comes free first: nobody may end what another connection has become."""
        self.slots.leave(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class's signature
        """A client that hangs up is none of our business; any other error is reported to the operator."""
        error = sys.exception()
        if not isinstance(error, OSError):
            log.error("a request failed", client=str(client_address), exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "chronolet"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # not 0.9, whose answers have no status

    def setup(self) -> None:
        """Connections end by deadlines of their own: a time-out of the socket begins anew with each byte."""
        super().setup()
        self.rfile.close()
        self._head = HeadReader(self.connection, self.server.served.head_seconds)
        self._certified = shaken(self.connection, self.server.served.head_seconds)
        self.rfile = BufferedReader(self._head)

    def handle_one_request(self) -> None:
        """One request, of which there may be several on a connection."""
        try:
            super().handle_one_request()
        except HeadTooLargeError as error:
            self.requestline, self.request_version, self.command = "", self.protocol_version, ""
            self._send(Answer(431, f"{error}\n".encode()), body=True, close=True)
        self._head.again()

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        self.connection.settimeout(WRITE_SECONDS)
        # What a request carries is never read: the next one cannot be found behind it.
        close = "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0").strip() != "0"
        judged = self.server.served.guard.request(self.path, self.headers, self._address(), certified=self._certified)
        if isinstance(judged, Refused):
            asks = {"WWW-Authenticate": "Bearer"} if judged.status == HTTPStatus.UNAUTHORIZED else {}
            self._send(Answer(judged.status, f"{judged.message}\n".encode(), headers=asks), body=body, close=True)
        else:
            self._send(self._page(judged), body=body, close=close)

    def _address(self) -> str:
        """Which of this machine's addresses the client has reached."""
        found = str(self.connection.getsockname()[0])
        return found.partition("%")[0].removeprefix("::ffff:")

    def _send(self, answer: Answer, *, body: bool, close: bool) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if close:
            self.send_header("Connection", "close")  # the base class ends the connection, too
        self.end_headers()
        if body:
            self.wfile.write(answer.body)

    def _page(self, asked: Request) -> Answer:
        found = self._found(asked)
        if found is None:
            there = ", ".join(sorted(self.server.served.pages))
            return Answer(404, f"{asked.path or '/'}: not found; there is {there}\n".encode())
        try:
            with self.server.slots.making(self.connection, _lane(asked.path)):
                return found[0](found[1])
        except TooManyError:
            message = b"too many requests for such pages are being answered: ask again\n"
            return Answer(503, message, headers={"Retry-After": "1"})
        except Exception as error:  # also an OSError: here it is the page's, not the client's
            log.error("a page failed", path=asked.path, client=str(self.client_address), exc_info=error)
            return Answer(500, f"{asked.path} failed: see the error in the agent's log\n".encode())

    def _found(self, asked: Request) -> tuple[Show, Query] | None:
        pages = self.server.served.pages
        if asked.path in pages:
            return pages[asked.path], asked.query
        above, _, below = asked.path.rpartition("/")
        return (pages[above], {**asked.query, "/": [below]}) if above in _HEALTH and above in pages else None

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Requests are counted by those who care, not logged."""


def _lane(path: str) -> Lane:
    if path.startswith(_HEALTH):
        return "health"
    return "metrics" if path.startswith("/metrics") else "pages"
