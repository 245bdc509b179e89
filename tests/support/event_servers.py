"""Servers that KubeEvents are sent to, over real HTTP, failing as they are told: a webhook, and a stand-in for a
Kubernetes API server that checks every request by the rules of its event API.

In: faults, one for each request to come. Out: what they were sent, what they took, what was wrong with it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import socket
import struct
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Broken = Literal["close", "reset", "half", "nonsense", "drip", "hang", "huge"]
Fault = Literal[Broken, "empty", "html 502", "later 503", "move 307", "deny 403"]
UNREACHABLE: tuple[Fault, ...] = ("close", "reset", "half", "nonsense", "drip", "hang", "huge")
"""Those that leave the client without a whole answer."""


class Server:
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

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        """What a server in its right mind says."""
        raise NotImplementedError

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
                self.over.wait(30)
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

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        expected = hmac.new(self._secret, body, hashlib.sha256).hexdigest()
        if self._secret and handler.headers.get("X-Chronolet-Signature") != f"sha256={expected}":
            self.unsigned += 1
            return 401, {}
        with self.lock:
            key = handler.headers["Idempotency-Key"]
            self.repeated += key in self.taken
            self.taken.setdefault(key, json.loads(body))
        return 200, {}


class ApiServer(Server):
    """Event objects by namespace and name. `wrong` is what a real server would have refused, in words."""

    def __init__(self, token: str = "") -> None:
        super().__init__()
        self._token = token
        self.events: dict[tuple[str, str], dict[str, Any]] = {}
        self.calls: list[tuple[str, str, int]] = []
        """(method, name, status) of each call that was answered."""
        self.wrong: list[str] = []

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        with self.lock:
            name, status, answer = self._answer(handler, body)
            self.calls.append((handler.command, name, status))
        return status, answer

    def _answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[str, int, Any]:
        found = re.fullmatch(r"/api/v1/namespaces/([^/]+)/events(?:/([^/]+))?", handler.path)
        if self._token and handler.headers.get("Authorization") != f"Bearer {self._token}":
            return "", *_status(401, "Unauthorized")
        if found is None:
            self.wrong.append(f"path {handler.path}")
            return "", *_status(404, "NotFound")
        namespace, name = found.groups()
        sent = json.loads(body)
        if handler.command == "POST" and name is None:
            return sent["metadata"]["name"], *self._create(handler, namespace, sent)
        if handler.command == "PATCH" and name is not None:
            return name, *self._patch(handler, namespace, name, sent)
        self.wrong.append(f"{handler.command} {handler.path}")
        return "", *_status(405, "MethodNotAllowed")

    def _create(self, handler: BaseHTTPRequestHandler, namespace: str, event: dict[str, Any]) -> tuple[int, Any]:
        if handler.headers["Content-Type"] != "application/json":
            self.wrong.append(f"create as {handler.headers['Content-Type']}")
        problems = list(_problems(namespace, event))
        self.wrong += problems
        if problems:
            return _status(422, "Invalid", problems[0])
        key = (namespace, event["metadata"]["name"])
        if key in self.events:
            return _status(409, "AlreadyExists")
        server_made = {"uid": f"uid-{len(self.events)}", "resourceVersion": "1", "creationTimestamp": "now"}
        self.events[key] = {**event, "metadata": {**event["metadata"], **server_made}}
        return 201, self.events[key]

    def _patch(
        self, handler: BaseHTTPRequestHandler, namespace: str, name: str, patch: dict[str, Any]
    ) -> tuple[int, Any]:
        if handler.headers["Content-Type"] != "application/strategic-merge-patch+json":
            self.wrong.append(f"patch as {handler.headers['Content-Type']}")
        if not patch.keys() <= {"count", "lastTimestamp", "message"}:
            self.wrong.append(f"patch of {sorted(patch)}")
        if (namespace, name) not in self.events:
            return _status(404, "NotFound")
        event = {**self.events[namespace, name], **patch}
        self.wrong += _problems(namespace, event, new=False)
        self.events[namespace, name] = event
        return 200, event


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "apiVersion": str,
    "kind": str,
    "metadata": dict,
    "involvedObject": dict,
    "reason": str,
    "message": str,
    "source": dict,
    "firstTimestamp": str,
    "lastTimestamp": str,
    "count": int,
    "type": str,
    "eventTime": (str, type(None)),
    "reportingComponent": str,
    "reportingInstance": str,
}


def _problems(namespace: str, event: dict[str, Any], *, new: bool = True) -> Iterator[str]:
    """What pkg/apis/core/validation/events.go and the API machinery would say."""
    yield from _problems_of_fields(event)
    yield from _problems_of_place(namespace, event["metadata"], event["involvedObject"])
    if new and event["metadata"].keys() & {"resourceVersion", "uid", "creationTimestamp"}:
        yield "metadata: what only the server sets"
    if event["type"] not in ("Normal", "Warning") or not 1 <= event["count"] < 2**31:
        yield f"type {event['type']!r}, count {event['count']!r}"
    if not event["reason"] or not event["source"].get("component"):
        yield "reason or source.component: empty"


def _problems_of_fields(event: dict[str, Any]) -> Iterator[str]:
    for field, kind in _FIELDS.items():
        if not isinstance(event.get(field, "" if kind is str else None), kind):
            yield f"{field}: {event.get(field)!r}"
    yield from (f"{field}: not a field" for field in event.keys() - _FIELDS.keys())
    if (event["apiVersion"], event["kind"]) != ("v1", "Event"):
        yield f"kind {event['kind']}"
    for field in ("firstTimestamp", "lastTimestamp"):
        if not _TIME.fullmatch(event[field]):
            yield f"{field}: {event[field]!r}"


def _problems_of_place(namespace: str, metadata: dict[str, Any], involved: dict[str, Any]) -> Iterator[str]:
    if not _NAME.fullmatch(metadata["name"]) or len(metadata["name"]) > 253:
        yield f"metadata.name: {metadata['name']!r}"
    if metadata.get("namespace") != namespace:
        yield f"metadata.namespace: {metadata.get('namespace')!r} in {namespace!r}"
    if involved.get("namespace", "default") != namespace:
        yield f"involvedObject.namespace: {involved.get('namespace')!r} in {namespace!r}"


def _status(code: int, reason: str, message: str = "") -> tuple[int, Any]:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return code, {**status, "code": code}


@contextmanager
def served(server: Server) -> Iterator[None]:
    """Until the end of the block."""
    try:
        yield
    finally:
        server.end()
