"""HTTP requests that are made to pods.

Comes in: a request. Goes out: the answer's status, or `RequestFailed` in Go's words. Implementation:
`adapters.http_requests`. Answers to pkg/probe/http/request.go.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A GET. Header names may repeat; `Host` among them replaces the one of the address."""

    scheme: Literal["http", "https"] = "http"
    host: str
    port: int
    path: str = "/"
    headers: Sequence[tuple[str, str]] = ()


class RequestFailed(Exception):  # noqa: N818 - an answer that every caller expects
    """There was no answer; the message is one line."""


class Requests(Protocol):
    """Whoever is asked has no certificate that could be checked: none is."""

    def get(self, request: Request, timeout_seconds: float, cancelled: threading.Event) -> int:
        """The status of the answer, redirects within the same host followed. Bounded by the time (0: none) and by
        `cancelled`; raises `RequestFailed`.
        """
