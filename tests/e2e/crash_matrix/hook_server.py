"""The HTTP server that the HTTP hooks of all runs use; it remembers the requests.

Input: requests for `/<node>/<path>`. Output: the paths of a node, each once, since a request may be repeated.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class HookServer:
    """The server, which listens on a free port until it is closed."""

    def __init__(self) -> None:
        self._requests: set[str] = set()
        requests = self._requests

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.add(self.path)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="hook-server", daemon=True)
        self._thread.start()

    def requests(self, node: str) -> list[str]:
        """Return the paths that were requested under the node's name."""
        return sorted(path.removeprefix(f"/{node}/") for path in set(self._requests) if path.startswith(f"/{node}/"))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
