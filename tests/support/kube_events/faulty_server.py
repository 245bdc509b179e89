"""A real HTTP server that fails on request: the base of servers to which KubeEvents are sent.

Input: faults, one for each request to come. Output: the number of requests, and of each fault. Next: `webhook`,
`api_server`.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Broken = Literal["close", "reset", "half", "nonsense", "drip", "hang", "huge"]
Fault = Literal[Broken, "empty", "html 502", "later 503", "move 307", "deny 403"]
UNREACHABLE: tuple[Fault, ...] = ("close", "reset", "half", "nonsense", "drip", "hang", "huge")
"""Faults that leave the client without a complete response."""


class Server(ABC):
    """One server on a separate port. Once the `faults` are used up, requests get proper responses."""

    def __init__(self) -> None:
        self.faults: deque[Fault] = deque()
        self.met: Counter[str] = Counter()
        """How often each fault occurred."""
        self.requests = 0
        self.over = threading.Event()
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.serve(self)

            def do_PATCH(self) -> None:
                outer.serve(self)

            def log_message(self, *_: object) -> None:
                return

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # for clients that wait during a stall

            def handle_error(self, *_: object) -> None:
                """Ignore broken connections, which killed clients leave behind."""

        self._listener = Listener(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_port}"

    def end(self) -> None:
        self.over.set()
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length", 0))
        body = handler.rfile.read(length)
        if len(body) < length:  # the client was killed while it sent the request
            return
        with self.lock:
            self.requests += 1
            fault = self.faults.popleft() if self.faults else None
            if fault is not None:
                self.met[fault] += 1
        if fault is not None:
            self._fail(handler, fault)
            return
        status, answer = self.respond(handler, body)
        _reply(handler, status, json.dumps(answer).encode())

    @abstractmethod
    def respond(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        """Return the status and body of a proper response."""

    def _fail(self, handler: BaseHTTPRequestHandler, fault: Fault) -> None:
        handler.close_connection = True
        with suppress(OSError):
            if fault in _RESPONSES:
                status, body, *headers = _RESPONSES[fault]
                _reply(handler, status, body, *headers)
            else:
                self._break_off(handler, fault)

    def _break_off(self, handler: BaseHTTPRequestHandler, fault: Fault) -> None:
        match fault:
            case "reset":
                handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                handler.connection.close()
            case "half":
                handler.wfile.write(_HEAD + b'Content-Length: 1000\r\n\r\n{"kind": "Ev')
            case "nonsense":
                handler.wfile.write(b"\x00\xffwhat?\r\n\r\n\r\n")
            case "drip":
                for byte in _HEAD * 20:
                    handler.wfile.write(bytes([byte]))
                    if self.over.wait(0.05):
                        return
            case "hang":
                self.over.wait()
            case "huge":
                handler.wfile.write(_HEAD + b"Content-Length: 99999999\r\n\r\n")
                while not self.over.is_set():
                    handler.wfile.write(b"x" * 65536)
            case _:
                return  # closed without a response


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_DENIED = json.dumps({"kind": "Status", "reason": "Forbidden", "message": "not you", "code": 403}).encode()
_RESPONSES: dict[Fault, tuple[Any, ...]] = {
    "empty": (200, b""),
    "html 502": (502, b"<html>bad gateway</html>"),
    "later 503": (503, b'{"kind": "Status", "code": 503}', ("Retry-After", "1")),
    "move 307": (307, b"", ("Location", "http://127.0.0.1:1/")),
    "deny 403": (403, _DENIED),
}


def _reply(handler: BaseHTTPRequestHandler, status: int, body: bytes, *headers: tuple[str, str]) -> None:
    with suppress(OSError):
        handler.send_response(status)
        for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(body))), *headers):
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)


@contextmanager
def served(server: Server) -> Iterator[None]:
    """Run the server until the end of the block."""
    try:
        yield
    finally:
        server.end()
