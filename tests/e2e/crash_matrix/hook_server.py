"""Whoever the HTTP hooks of all lives ask: it answers, and remembers who asked for what.

Input: requests for `/<node>/<what>`. Output: the paths of a node, each once, for a request may be made again.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Listener:
    """On a port of its own until closed."""

    def __init__(self) -> None:
        self._asked: set[str] = set()
        asked = self._asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.add(self.path)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="listener", daemon=True)
        self._thread.start()

    def asked(self, node: str) -> list[str]:
        """What was asked for under the node's name."""
        return sorted(path.removeprefix(f"/{node}/") for path in set(self._asked) if path.startswith(f"/{node}/"))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
