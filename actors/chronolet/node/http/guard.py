"""Decides which HTTP requests are answered, based on the host they address, their origin, and their token or client
certificate. Pure.

Input: a request's target and headers. Output: its path and query, or a rejection with a status. Next: `server`.

A browser sends the name that the page was loaded from as `Host`. A foreign site whose name resolves to this machine
(DNS rebinding) can read responses as if they came from its own pages, so only requests to known names of this node are
answered. Requests to this node's addresses are safe: no foreign site is loaded from them. See docs/adr/0022.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Mapping
from email.message import Message
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qs, urlsplit

from chronolet.node.settings.http import ANY_HOST

_SCHEMES = ("http", "https")
_OPEN = "/healthz"
_SHOWN = 60
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/@\[\]]+))(?::[0-9]*)?")


Headers = Message
"""A request's headers; names are case-insensitive."""


class Request(NamedTuple):
    """An accepted request."""

    path: str
    query: Mapping[str, list[str]]


class Rejected(NamedTuple):
    """A rejected request: the HTTP status, and a one-line message for the client."""

    status: int
    message: str


class Guard(NamedTuple):
    """The access rules of one server. If `token` is empty and `certificates` is not set, every client has access;
    /healthz never needs authentication.
    """

    names: frozenset[str] = frozenset()
    """Accepted host names in lower case, in addition to loopback names and the server's address on the connection."""
    token: str = ""
    certificates: bool = False
    """Whether a verified client certificate is accepted instead of a token."""

    def request(self, target: str, headers: Headers, address: str, *, certified: bool) -> Request | Rejected:
        """Check a request; return it parsed, or the reason why it is rejected. `address`: the server's address on the
        connection. `certified`: whether the client presented a TLS certificate that was verified.
        """
        parts = _parsed(target)
        if isinstance(parts, Rejected):
            return parts
        path = parts.path.rstrip("/")
        rejected = self._by_name(parts.netloc, headers, address) or self._by_site(headers, address)
        if rejected is None and path != _OPEN and not self._may_read(headers, certified=certified):
            rejected = Rejected(401, f"unauthorized: expected {self._expected()}")
        return rejected or Request(path, parse_qs(parts.query, keep_blank_values=True))

    def _by_name(self, in_target: str, headers: Headers, address: str) -> Rejected | None:
        hosts = headers.get_all("Host", ())
        if len(hosts) > 1:
            return Rejected(400, f"found {len(hosts)} Host headers, expected one")
        # The browser may have trusted either name, so both must be this node's.
        for host in (*hosts, *([in_target] if in_target else ())):
            if not self._is_ours(host, address):
                known = ", ".join(sorted({*self.names, address, "localhost"}))
                message = (
                    f"Host {_shown(host)} is not one of this node's names ({known}); add it with --http-allowed-hosts"
                )
                return Rejected(421, message)
        return None

    def _by_site(self, headers: Headers, address: str) -> Rejected | None:
        for origin in headers.get_all("Origin", ()):
            if not self._is_ours(origin.partition("://")[2], address):
                return Rejected(403, f"Origin {_shown(origin)} is another site, whose pages must not read this one")
        return None

    def _is_ours(self, host: str, address: str) -> bool:
        if ANY_HOST in self.names:
            return True
        name = _name(host)
        return name is not None and (name in self.names or name == "localhost" or _is_own(name, address))

    def _may_read(self, headers: Headers, *, certified: bool) -> bool:
        if (certified and self.certificates) or not (self.token or self.certificates):
            return True
        found = headers.get_all("Authorization", ())
        scheme, _, given = found[0].partition(" ") if len(found) == 1 else ("", "", "")
        if not self.token or scheme.lower() != "bearer":
            return False
        # In constant time: the duration must not reveal how much of the token is correct.
        return hmac.compare_digest(given.strip().encode("latin-1", "replace"), self.token.encode())

    def _expected(self) -> str:
        ways = {"Authorization: Bearer TOKEN": bool(self.token), "a client certificate": self.certificates}
        return " or ".join(way for way, open_to in ways.items() if open_to)


def _parsed(target: str) -> SplitResult | Rejected:
    """Parse a request target: a path, or the absolute URL that clients send to proxies."""
    try:
        parts = urlsplit(target)
        port = parts.port
    except ValueError as error:
        return Rejected(400, f"the request's target cannot be parsed: {error}")
    absolute = bool(parts.scheme or parts.netloc)
    if port == 0 or (absolute and (parts.scheme not in _SCHEMES or not parts.netloc)):
        return Rejected(400, f"the request's target is {_shown(target)}, expected a path such as /healthz")
    return parts


def _name(host: str) -> str | None:
    """Return the name or address in `NAME`, `NAME:PORT` or `[ADDRESS]:PORT`, in lower case; None if `host` has none of
    these forms.
    """
    found = _HOST.fullmatch(host.strip().lower())
    return (found[1] or found[2]).rstrip(".") if found else None


def _is_own(name: str, address: str) -> bool:
    """Return whether `name` is a loopback address or the server's address on the connection."""
    try:
        found = ipaddress.ip_address(name)
        return found.is_loopback or found == ipaddress.ip_address(address)
    except ValueError:
        return False


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
