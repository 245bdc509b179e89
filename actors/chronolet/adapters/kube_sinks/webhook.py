"""KubeEvents as JSON to a user's URL.

Input: posts. Output: for each post, a POST of the complete Event object, signed if there is a secret. Any 2xx
acknowledges the post. An incomplete response, a 5xx, and 408, 425 or 429 cause a retry; any other status rejects the
post. Delivery is at least once; `Idempotency-Key` is the same in every attempt for a post. Next: the user's server.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

import msgspec

from chronolet.adapters.kube_sinks.calls import Caller, Unreachable
from chronolet.ports.kube_sinks import Outcome, api_event
from chronolet_schemas.kube_events import Post

SIGNATURE = "X-Chronolet-Signature"
_LATER = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


class WebhookSink:
    """Implements `ports.kube_sinks.Sink` for a URL. `secret_file` contains the signing key; a trailing line end is
    ignored. It is read for each post, so it may change while the agent is running.
    """

    batch_size = 1

    def __init__(self, call: Caller, node: str, secret_file: str = "") -> None:
        self._call = call
        self._node = node
        self._secret_file = secret_file

    def deliver(self, posts: Sequence[Post]) -> Outcome:
        (post,) = posts
        body = msgspec.json.encode(api_event(post, self._node))
        try:
            answer = self._call("POST", "", self._headers(post, body), body)
        except (Unreachable, OSError) as error:
            return Outcome(failure=str(error))
        if 200 <= answer.status < 300:  # noqa: PLR2004 - the success statuses
            return Outcome(delivered=1)
        status = f"answered {answer.status}"
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status in _LATER:
            return Outcome(failure=status)
        return Outcome(refused=((post.name, status),))

    def _headers(self, post: Post, body: bytes) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "chronolet",
            "Idempotency-Key": f"{self._node}/{post.name}/{post.count}/{post.at}",
        }
        if self._secret_file:
            secret = Path(self._secret_file).read_bytes().rstrip(b"\r\n")
            headers[SIGNATURE] = f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"
        return headers
