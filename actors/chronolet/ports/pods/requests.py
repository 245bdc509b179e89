"""The port for HTTP requests to pods.

Input: a request. Output: the response's status, or `RequestFailed` with the text of Go's HTTP client. Implementation:
`adapters.http.requests`. Source: pkg/probe/http/request.go.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A GET request. Header names may repeat; a `Host` header replaces the one derived from the address."""

    scheme: Literal["http", "https"] = "http"
    host: str
    port: int
    path: str = "/"
    headers: Sequence[tuple[str, str]] = ()


class RequestFailed(Exception):  # noqa: N818 - an answer that every caller expects
    """There was no response; the message is one line."""


class Requests(Protocol):
    """An HTTP client for pods. It verifies no certificates, because pods have none that could be verified."""

    def get(self, request: Request, timeout_seconds: float, cancelled: threading.Event) -> int:
        """The response's status, after following redirects within the same host. Ends after the time-out (0: none) or
        when `cancelled` is set; raises `RequestFailed`.
        """
