"""An OpenTelemetry collector that keeps what it receives: OTLP over HTTP, decoded with the published protobuf types."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.support.scratch import wait_until

PATH = "/v1/traces"


class Collector:
    """The spans that were received, and the attributes of their resources."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self.resources: list[dict[str, str]] = []
        self.spans: list[Any] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{PATH}"

    def take(self, body: bytes) -> None:
        for one in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(attributes(one.resource))
            self.spans += [span for scope in one.scope_spans for span in scope.spans]

    def wait_for(self, name: str) -> Any:
        """Wait for a span with this name; return it."""
        wait_until(lambda: any(span.name == name for span in self.spans), f"the span {name}")
        return next(span for span in self.spans if span.name == name)

    def below(self, parent: Any) -> list[Any]:
        """Return the children of a span."""
        return [span for span in self.spans if span.parent_span_id == parent.span_id]


def attributes(of: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in of.attributes}


@contextmanager
def collector(call: Callable[[Callable[[], Any]], Any] = lambda make: make()) -> Iterator[Collector]:
    """Run a collector. `call` runs a function in the network namespace where the collector is to listen."""
    server = call(lambda: ThreadingHTTPServer(("127.0.0.1", 0), _Handler))
    found = Collector(server)
    _Handler.found = found
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    found: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        is_ours = self.path == PATH and self.headers["Content-Type"] == "application/x-protobuf"
        if is_ours:
            self.found.take(body)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200 if is_ours else 404)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Do not log requests."""
