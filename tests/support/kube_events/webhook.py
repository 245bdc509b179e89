"""A webhook to which KubeEvents are sent.

Input: signed requests over real HTTP, and the faults of `faulty_server`. Output: the accepted events.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.kube_events.faulty_server import Server


class Webhook(Server):
    """Accepts events signed with `secret`, or any events if that is empty, and stores one for each key; `taken`
    contains them in order of arrival.
    """

    def __init__(self, secret: bytes = b"") -> None:
        super().__init__()
        self._secret = secret
        self.taken: dict[str, dict[str, Any]] = {}
        self.repeated = 0
        self.unsigned = 0
        self.logins: list[str] = []

    def respond(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
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
