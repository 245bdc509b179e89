"""Servers that KubeEvents are sent to, over real HTTP, failing as they are told. Here: a webhook.

Input: faults, one for each request to come. Output: what they were sent, what they took. Next: `event_api`, a stand-in
for a Kubernetes API server.
"""

from __future__ import annotations

import hashlib
import hmac
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
"""Those that leave the client without a whole answer."""


class Server(ABC):
    """One server on a port of its own. Requests beyond the `faults` are answered as they deserve."""

    def __init__(self) -> None:
        self.faults: deque[Fault] = deque()
        self.met: Counter[str] = Counter()
        """How often each fault was shown."""
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
            request_queue_size = 128  # of those that a stall keeps waiting

            def handle_error(self, *_: object) -> None:
                """Clients that were killed leave broken connections."""

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
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        with self.lock:
            self.requests += 1
            fault = self.faults.popleft() if self.faults else None
            if fault is not None:
                self.met[fault] += 1
        if fault is not None:
            self._fail(handler, fault)
            return
        status, answer = self.answer(handler, body)
        _reply(handler, status, json.dumps(answer).encode())

    @abstractmethod
    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        """What a server in its right mind says."""

    def _fail(self, handler: BaseHTTPRequestHandler, fault: Fault) -> None:
        handler.close_connection = True
        with suppress(OSError):
            if fault in _SAID:
                status, body, *headers = _SAID[fault]
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
                return  # closed without a word


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_DENIED = json.dumps({"kind": "Status", "reason": "Forbidden", "message": "not you", "code": 403}).encode()
_SAID: dict[Fault, tuple[Any, ...]] = {
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


class Webhook(Server):
    """Takes what is signed with `secret`, once for each key; `taken` in the order in which it came."""

    def __init__(self, secret: bytes = b"") -> None:
        super().__init__()
        self._secret = secret
        self.taken: dict[str, dict[str, Any]] = {}
        self.repeated = 0
        self.unsigned = 0
        self.logins: list[str] = []

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        self.logins += handler.headers.get_all("Authorization", [])
        expected = hmac.new(self._secret, body, hashlib.sha256).hexdigest()
        if self._secret and handler.headers.get("X-Chronolet-Signature") != f"sha256={expected}":
            self.unsigned += 1
            return 401, {}
        with self.lock:
            key = handler.headers["Idempotency-Key"]
            self.repeated += key in self.taken
            self.taken.setdefault(key, json.loads(body))
        return 200, {}


@contextmanager
def served(server: Server) -> Iterator[None]:
    """Until the end of the block."""
    try:
        yield
    finally:
        server.end()
