"""The node's HTTP server: serves /healthz, /readyz, /metrics, and other pages passed to it.

Input: requests. Output: pages. The server sleeps in one `select` until a client connects; each connection has a
thread, which ends unless the whole request head arrives within a deadline. Next: `guard` checks requests, `slots`
keeps capacity for health checks; `health` and `metrics` render pages. Source: pkg/kubelet/server (the read-only part).
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
from chronolet.node.http.guard import Guard, Rejected, Request
from chronolet.node.http.heads import HEAD_SECONDS, WRITE_SECONDS, HeadReader, HeadTooLargeError, handshake
from chronolet.node.http.slots import Lane, Slots, TooManyError
from chronolet.node.settings.values import SettingsError

log = structlog.get_logger("chronolet.http")

_BACKLOG = 128
_STARVED_SECONDS = 0.05
_STARVED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_HEALTH = ("/healthz", "/readyz")
_OTHER_PATH = "other"
TEXT = "text/plain; charset=utf-8"


class Response(NamedTuple):
    """The response to a request: one page."""

    status: int
    body: bytes
    content_type: str = TEXT
    headers: Mapping[str, str] = MappingProxyType({})


Query = Mapping[str, list[str]]
Show = Callable[[Query], Response]
"""Renders a page. Called on the connection's thread."""


def health_pages(health: Health) -> dict[str, Show]:
    """Return the pages /healthz and /readyz; each check also has a page below them, such as /healthz/ping."""
    return {"/healthz": _page(health, "healthz"), "/readyz": _page(health, "readyz")}


def _page(health: Health, page: Page) -> Show:
    def show(query: Query) -> Response:
        only = query["/"][0] if "/" in query else ""
        report = health.report(page, only)
        if report is None:
            return Response(404, f"no check named {only}\n".encode())
        if report.good and "verbose" not in query:
            return Response(200, b"ok")
        return Response(200 if report.good else 500, report.text(page).encode())

    return show


Served = Callable[[str, str, float], None]
"""Records a request that was answered: its method, the path of its page or `other`, and its duration in seconds."""


def _ignored(method: str, path: str, seconds: float) -> None:
    """Record nothing."""


class HttpServer:
    """Serves pages from its own threads, from `start` to `stop`. Raises SettingsError if it cannot listen on `address`
    and `port`.
    """

    def __init__(
        self,
        address: str,
        port: int,
        pages: Mapping[str, Show],
        *,
        guard: Guard = Guard(),  # noqa: B008 - an immutable value
        tls: ssl.SSLContext | None = None,
        head_seconds: float = HEAD_SECONDS,
        served: Served = _ignored,
    ) -> None:
        """`served`: called with each request that the guard admits."""
        try:
            self._server = _Server(address, port, _Configuration(pages, guard, tls, head_seconds, served))
        except OSError as error:
            raise SettingsError(
                f"--address {address} --port {port}: cannot listen there: {error.strerror or error}; "
                "choose another port, or 0 for no HTTP server"
            ) from error
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    @property
    def port(self) -> int:
        """The actual port, even if 0 was requested."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving; the port is free afterwards."""
        self._wake.close()
        if self._thread.ident is not None:
            self._thread.join()
        self._server.server_close()
        self._woken.close()

    def _serve(self) -> None:
        # Not serve_forever(), which wakes twice a second to check whether it should stop.
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while all(key.fileobj is not self._woken for key, _ in selector.select()):
                self._server.handle_request()


class _Configuration(NamedTuple):
    """The pages, access rules and time limit of a server."""

    pages: Mapping[str, Show]
    guard: Guard
    tls: ssl.SSLContext | None
    head_seconds: float
    served: Served


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    timeout = 0
    request_queue_size = _BACKLOG

    def __init__(self, address: str, port: int, served: _Configuration) -> None:
        self.served = served
        self.slots = Slots()
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        """Bind without the base class's DNS lookup of the host's own name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection; its TLS handshake, if any, happens later on the connection's thread."""
        try:
            connection, client = self.socket.accept()
        except OSError as error:
            if error.errno in _STARVED:
                # The listening socket stays readable: without a pause this thread would spin.
                self.slots.evict_oldest()
                time.sleep(_STARVED_SECONDS)
            raise
        if self.served.tls is None:
            return connection, client
        return self.served.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), client

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the connection. If all slots are taken, the connection replaces the one that has waited
        longest for its client; if none is waiting, the new connection is closed.
        """
        if not self.slots.enter(request):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError as error:
            log.warning("cannot start a thread, connection closed", error=str(error))
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Free the slot before closing: otherwise an eviction could hit a new connection with the same descriptor."""
        self.slots.leave(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class's signature
        """Log the error, unless the client has hung up."""
        error = sys.exception()
        if not isinstance(error, OSError):
            log.error("a request failed", client=str(client_address), exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "chronolet"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # not 0.9, whose responses have no status

    def setup(self) -> None:
        """Use our own deadlines: a socket's time-out would start over with each byte."""
        super().setup()
        self.rfile.close()
        self._head = HeadReader(self.connection, self.server.served.head_seconds)
        self._certified = handshake(self.connection, self.server.served.head_seconds)
        self.rfile = BufferedReader(self._head)

    def handle_one_request(self) -> None:
        """Handle one of possibly several requests on the connection."""
        try:
            super().handle_one_request()
        except HeadTooLargeError as error:
            self.requestline, self.request_version, self.command = "", self.protocol_version, ""
            self._send(Response(431, f"{error}\n".encode()), body=True, close=True)
        self._head.again()

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        self.connection.settimeout(WRITE_SECONDS)
        # Request bodies are never read, so a request that follows a body could not be found.
        close = "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0").strip() != "0"
        checked = self.server.served.guard.request(self.path, self.headers, self._address(), certified=self._certified)
        if isinstance(checked, Rejected):
            headers = {"WWW-Authenticate": "Bearer"} if checked.status == HTTPStatus.UNAUTHORIZED else {}
            rejection = Response(checked.status, f"{checked.message}\n".encode(), headers=headers)
            self._send(rejection, body=body, close=True)
        else:
            began = time.monotonic()
            self._send(self._page(checked), body=body, close=close)
            path = checked.path if checked.path in self.server.served.pages else _OTHER_PATH
            self.server.served.served(self.command, path, time.monotonic() - began)

    def _address(self) -> str:
        """Return the local address that the client connected to."""
        found = str(self.connection.getsockname()[0])
        return found.partition("%")[0].removeprefix("::ffff:")

    def _send(self, answer: Response, *, body: bool, close: bool) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if close:
            self.send_header("Connection", "close")  # also makes the base class close the connection
        self.end_headers()
        if body:
            self.wfile.write(answer.body)

    def _page(self, request: Request) -> Response:
        found = self._found(request)
        if found is None:
            known = ", ".join(sorted(self.server.served.pages))
            return Response(404, f"{request.path or '/'}: not found; the pages are {known}\n".encode())
        try:
            with self.server.slots.rendering(self.connection, _lane(request.path)):
                return found[0](found[1])
        except TooManyError:
            message = b"too many concurrent requests for pages of this kind: retry\n"
            return Response(503, message, headers={"Retry-After": "1"})
        except Exception as error:  # also OSError: here it comes from the page, not from the client
            log.error("a page failed", path=request.path, client=str(self.client_address), exc_info=error)
            return Response(500, f"{request.path} failed: see the error in the agent's log\n".encode())

    def _found(self, request: Request) -> tuple[Show, Query] | None:
        pages = self.server.served.pages
        if request.path in pages:
            return pages[request.path], request.query
        above, _, below = request.path.rpartition("/")
        return (pages[above], {**request.query, "/": [below]}) if above in _HEALTH and above in pages else None

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Do not log requests."""


def _lane(path: str) -> Lane:
    if path.startswith(_HEALTH):
        return "health"
    return "metrics" if path.startswith("/metrics") else "pages"
