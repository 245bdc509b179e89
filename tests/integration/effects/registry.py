"""A local registry with one image: the part of the v2 protocol that an engine needs to pull it.

Input: the network namespace of an engine. Output: an image that this engine can pull from 127.0.0.1, with or without a
password, immediately or only after the test releases it.
"""

import base64
import gzip
import hashlib
import io
import json
import socket
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.machine.netns import NetworkNamespace
from tests.support.scratch import HANG_SECONDS

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _layer(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("hello")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@dataclass
class Registry:
    """The registry and what it returns. `password`: the password of the user `u`; empty if no login is needed."""

    port: int
    password: str = ""
    root: bytes = b""
    """The layer's content, as a tar; by default it contains no program."""
    status: int = 200
    """If not 200, the status of every response."""
    released: threading.Event = field(default_factory=threading.Event)
    """Set to send the second half of the layer."""
    half_sent: threading.Event = field(default_factory=threading.Event)
    """Set once the first half of the layer has been sent."""
    drip: int = 0
    """Number of bytes of the second half that are sent every tenth of a second before the release."""
    answers: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The content differs in each registry, because an engine does not pull a layer that it already has.
        layer = self.root or _layer(f"{self.port:05}".encode())
        packed = gzip.compress(layer, mtime=0)
        rootfs = {"type": "layers", "diff_ids": [_digest(layer)]}
        config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}).encode()
        parts = ((_CONFIG, config), (_LAYER, packed))
        described = [{"mediaType": kind, "size": len(body), "digest": _digest(body)} for kind, body in parts]
        manifest = json.dumps(
            {"schemaVersion": 2, "mediaType": _MANIFEST, "config": described[0], "layers": described[1:]}
        ).encode()
        for name in ("1", _digest(manifest)):
            self.answers[f"/v2/team/hello/manifests/{name}"] = (_MANIFEST, manifest)
        for kind, body in parts:
            self.answers[f"/v2/team/hello/blobs/{_digest(body)}"] = (kind, body)
        self.answers["/v2/"] = ("application/json", b"{}")
        self.layer_path = f"/v2/team/hello/blobs/{_digest(packed)}"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def reference(self) -> str:
        return f"{self.address}/team/hello:1"

    def admits(self, header: str) -> bool:
        return not self.password or header == f"Basic {base64.b64encode(f'u:{self.password}'.encode()).decode()}"


class _Handler(BaseHTTPRequestHandler):
    registry: Registry
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind, body = self.registry.answers.get(self.path, ("", b""))
        if self.registry.status != 200:
            self._answer(self.registry.status, "text/html", b"<html>no</html>")
            return
        if not self.registry.admits(self.headers.get("Authorization", "")):
            self._answer(401, "application/json", b'{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}')
        elif not kind:
            self._answer(
                404, "application/json", b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}'
            )
        else:
            self._answer(200, kind, body)

    def _send(self, body: bytes) -> None:
        """Send a body. If it is the layer, send the second half only once `released` is set; until then, send `drip`
        bytes of it every tenth of a second.
        """
        sent = len(body) // 2 if self.path == self.registry.layer_path else 0
        self.wfile.write(body[:sent])
        if sent:
            self.registry.half_sent.set()
        while sent and not self.registry.released.wait(0.1):
            dripped = body[sent : sent + self.registry.drip]
            self.wfile.write(dripped)
            sent += len(dripped)
        self.wfile.write(body[sent:])

    do_HEAD = do_GET  # noqa: N815 - http.server requires this name

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        if kind == _MANIFEST:
            self.send_header("Docker-Content-Digest", _digest(body))
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="test"')
        self.end_headers()
        if self.command == "GET":
            with suppress(ConnectionError):  # the client may have disconnected
                self._send(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def registry_in(
    namespace: NetworkNamespace, *, password: str = "", slow: bool = False, root: bytes = b""
) -> Iterator[Registry]:
    """Run a registry that serves inside the namespace. If `slow`, it holds back half of the layer until `released`."""
    listening = namespace.call(lambda: socket.create_server(("127.0.0.1", 0)))
    registry = Registry(listening.getsockname()[1], password, root)
    if not slow:
        registry.released.set()
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Handler", (_Handler,), {"registry": registry}), bind_and_activate=False
    )
    server.daemon_threads = True
    server.socket.close()
    server.socket = listening
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield registry
    finally:
        registry.released.set()
        server.shutdown()
        thread.join(HANG_SECONDS)
        server.server_close()
