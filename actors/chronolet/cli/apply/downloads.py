"""Downloads a manifest from an http(s) URL, with limits on size, redirects and time.

Input: a URL. Output: its content up to a size limit, or a Failure that names the URL without its password. Proxies
are taken from the environment, as with curl. Next: `manifests`. Source: kubectl's pkg resource (URLVisitor).
"""

from __future__ import annotations

import http.client
import threading
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from chronolet.cli.errors import Failure

SCHEMES = ("http://", "https://")
SILENCE_SECONDS = 10.0
"""The longest time to wait for the next byte from the server."""
WHOLE_SECONDS = 60.0
"""The longest time that the whole download may take."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows at most ten redirects, and none from https to http."""

    max_redirections = 10

    def redirect_request(self, req: urllib.request.Request, *rest: Any) -> urllib.request.Request | None:
        new = super().redirect_request(req, *rest)
        if new is not None and req.type == "https" and new.type != "https":
            raise urllib.error.URLError(f"redirected from https to {new.type}")
        return new


def is_url(name: str) -> bool:
    """Return whether a file's name is an http(s) URL."""
    return name.lower().startswith(SCHEMES)


def shown(url: str) -> str:
    """Return the URL without the user and the password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def download(url: str, most: int, *, silence_seconds: float = SILENCE_SECONDS, seconds: float = WHOLE_SECONDS) -> bytes:
    """Return the first `most` bytes of the resource.

    Raises Failure if the server cannot be reached or returns an error, after `silence_seconds` without data, or after
    `seconds` in total.
    """
    found: list[bytes | Exception] = []

    def fetch() -> None:
        try:
            found.append(_fetched(url, most, silence_seconds))
        except Exception as error:  # noqa: BLE001 - passed unchanged to the waiting thread
            found.append(error)

    # A thread bounds the total time: a server that trickles bytes never exceeds the time-out of one read.
    reader = threading.Thread(target=fetch, name="download", daemon=True)
    reader.start()
    reader.join(seconds)
    if not found:
        raise Failure(f"{shown(url)}: download not finished within {seconds:.0f} s")
    if isinstance(found[0], Exception):
        raise _worded(url, found[0]) from found[0]
    return found[0]


def _fetched(url: str, most: int, silence_seconds: float) -> bytes:
    opener = urllib.request.OpenerDirector()
    # Without the default handlers, which also open file and ftp URLs: a server could redirect to these.
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    request = urllib.request.Request(url, headers={"User-Agent": "chronolet"})  # noqa: S310 - `is_url` has checked the scheme
    with opener.open(request, timeout=silence_seconds) as reply:
        content: bytes = reply.read(most)
    return content


def _worded(url: str, error: Exception) -> Failure:
    if isinstance(error, urllib.error.HTTPError):
        return Failure(f"{shown(url)}: the server returned {error.code} {error.reason}, expected 200 OK")
    if isinstance(error, urllib.error.URLError):
        return Failure(f"{shown(url)}: cannot be downloaded: {error.reason}")
    if isinstance(error, OSError | http.client.HTTPException | ValueError):
        return Failure(f"{shown(url)}: cannot be downloaded: {str(error) or type(error).__name__}")
    raise error
