"""The node's HTTP server: /healthz, /readyz, /metrics, and whatever pages are added.

Comes in: requests on a local address. Goes out: plain pages. It sleeps in one `select` until somebody asks. Next:
`health`, `metrics`. Source: pkg/kubelet/server (the read-only part).
"""

from __future__ import annotations

import selectors
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import structlog

from chronolet.node.health import Health, Page
from chronolet.node.values import SettingsError

log = structlog.get_logger("chronolet.http")

_REQUEST_SECONDS = 30
_AT_ONCE = 32
TEXT = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """A page."""

    status: int
    body: bytes
    content_type: str = TEXT


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

    def __init__(self, address: str, port: int, pages: Mapping[str, Show]) -> None:
        try:
            self._server = _Server(address, port, pages)
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


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    timeout = 0
    request_queue_size = _AT_ONCE

    def __init__(self, address: str, port: int, pages: Mapping[str, Show]) -> None:
        self.pages = pages
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.slots = threading.BoundedSemaphore(_AT_ONCE)
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        """Bind without asking DNS for the own name, as the base class would: that may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for each connection, up to a limit: the next ones are turned away, not queued without end."""
        if self.slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class's signature
        """A client that hangs up is none of our business; a page that fails is told to the operator."""
        error = sys.exception()
        if not isinstance(error, OSError):
            log.error("a page failed", client=str(client_address), exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "chronolet"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = _REQUEST_SECONDS

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        answer = self._page()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if body:
            self.wfile.write(answer.body)

    def _page(self) -> Answer:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        path = parts.path.rstrip("/")
        if path in self.server.pages:
            return self.server.pages[path](query)
        above, _, below = path.rpartition("/")
        if above in ("/healthz", "/readyz") and above in self.server.pages:
            return self.server.pages[above]({**query, "/": [below]})
        return Answer(404, f"{path or '/'}: not found; there is {', '.join(sorted(self.server.pages))}\n".encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Requests are counted by those who care, not logged."""
