"""A manifest behind an http(s) URL, with bounds on its size, its redirects and its time.

Comes in: a URL. Goes out: bytes, no more than asked for; a Failure that names the URL without its password. Proxies are
taken from the environment, as curl does. Next: `manifests`. Source: kubectl's pkg resource (URLVisitor).
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
"""How long the server may be silent."""
WHOLE_SECONDS = 60.0
"""How long the download may take, however slowly the bytes arrive."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """At most ten, and none from https to http."""

    max_redirections = 10

    def redirect_request(self, req: urllib.request.Request, *rest: Any) -> urllib.request.Request | None:
        new = super().redirect_request(req, *rest)
        if new is not None and req.type == "https" and new.type != "https":
            raise urllib.error.URLError(f"redirected from https to {new.type}")
        return new


def is_url(name: str) -> bool:
    """Whether a file's name is the address of a download."""
    return name.lower().startswith(SCHEMES)


def shown(url: str) -> str:
    """The URL without user and password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def download(url: str, most: int, *, silence_seconds: float = SILENCE_SECONDS, seconds: float = WHOLE_SECONDS) -> bytes:
    """The first `most` bytes at most of what is there."""
    found: list[bytes | Exception] = []

    def fetch() -> None:
        try:
            found.append(_fetched(url, most, silence_seconds))
        except Exception as error:  # noqa: BLE001 - handed to the waiting thread as it is
            found.append(error)

    # A thread, for a server that sends a byte now and then is silent for no single read.
    reader = threading.Thread(target=fetch, name="download", daemon=True)
    reader.start()
    reader.join(seconds)
    if not found:
        raise Failure(f"{shown(url)}: not downloaded within {seconds:.0f} s")
    if isinstance(found[0], Exception):
        raise _worded(url, found[0]) from found[0]
    return found[0]


def _fetched(url: str, most: int, silence_seconds: float) -> bytes:
    opener = urllib.request.OpenerDirector()
    # Not the default ones: they also open files and ftp, to which a server could redirect.
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
    request = urllib.request.Request(url, headers={"User-Agent": "chronolet"})  # noqa: S310 - `is_url` has checked it
    with opener.open(request, timeout=silence_seconds) as reply:
        content: bytes = reply.read(most)
    return content


def _worded(url: str, error: Exception) -> Failure:
    if isinstance(error, urllib.error.HTTPError):
        return Failure(f"{shown(url)}: the server answered {error.code} {error.reason}, expected 200 OK")
    if isinstance(error, urllib.error.URLError):
        return Failure(f"{shown(url)}: cannot be downloaded: {error.reason}")
    if isinstance(error, OSError | http.client.HTTPException | ValueError):
        return Failure(f"{shown(url)}: cannot be downloaded: {str(error) or type(error).__name__}")
    raise error
