"""Which HTTP requests are answered: by the name they address, the site they come from, the token they carry. Pure.

Input: a request's target and headers. Output: its path and query, or a refusal with a status. Next: `http`.

A browser sends the name that the user's page was loaded from as `Host`. A foreign site that lets its name resolve to
this machine (DNS rebinding) can read answers like any page of its own, so only names that are known to be ours are
answered. Our own addresses are safe: no foreign site is loaded from them. See docs/adr/0022.
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
"""Those of a request; names are matched in any case."""


class Request(NamedTuple):
    """What is asked for."""

    path: str
    query: Mapping[str, list[str]]


class Refused(NamedTuple):
    """Why a request is not answered; one line for its sender."""

    status: int
    message: str


class Guard(NamedTuple):
    """What this server lets in. An empty token: none is needed."""

    names: frozenset[str] = frozenset()
    """Names and addresses other than the loopback's and the connection's own, in lower case."""
    token: str = ""
    certificates: bool = False
    """Whether a client certificate that was verified is as good as a token."""

    def request(self, target: str, headers: Headers, address: str, *, certified: bool) -> Request | Refused:
        """Judge a request that came in at `address`, the server's side of the connection. `certified`: over TLS with a
        client certificate that was verified.
        """
        parts = _parsed(target)
        if isinstance(parts, Refused):
            return parts
        path = parts.path.rstrip("/")
        refused = self._by_name(parts.netloc, headers, address) or self._by_site(headers, address)
        if refused is None and path != _OPEN and not self._may_read(headers, certified=certified):
            refused = Refused(401, f"unauthorized: expected {self._expected()}")
        return refused or Request(path, parse_qs(parts.query, keep_blank_values=True))

    def _by_name(self, in_target: str, headers: Headers, address: str) -> Refused | None:
        hosts = headers.get_all("Host", ())
        if len(hosts) > 1:
            return Refused(400, f"found {len(hosts)} Host headers, expected one")
        # Of two names, either could be the one that a browser trusts: both must be ours.
        for host in (*hosts, *([in_target] if in_target else ())):
            if not self._is_ours(host, address):
                known = ", ".join(sorted({*self.names, address, "localhost"}))
                message = (
                    f"Host {_shown(host)} is none of this node's names ({known}); --http-allowed-hosts adds others"
                )
                return Refused(421, message)
        return None

    def _by_site(self, headers: Headers, address: str) -> Refused | None:
        for origin in headers.get_all("Origin", ()):
            if not self._is_ours(origin.partition("://")[2], address):
                return Refused(403, f"Origin {_shown(origin)} is another site, whose pages may not read this one")
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
        # In a time that does not depend on how much of it is right.
        return hmac.compare_digest(given.strip().encode("latin-1", "replace"), self.token.encode())

    def _expected(self) -> str:
        ways = {"Authorization: Bearer TOKEN": bool(self.token), "a client certificate": self.certificates}
        return " or ".join(way for way, open_to in ways.items() if open_to)


def _parsed(target: str) -> SplitResult | Refused:
    """A path, or the URL that clients send to proxies."""
    try:
        parts = urlsplit(target)
        port = parts.port
    except ValueError as error:
        return Refused(400, f"the request's target cannot be read: {error}")
    absolute = bool(parts.scheme or parts.netloc)
    if port == 0 or (absolute and (parts.scheme not in _SCHEMES or not parts.netloc)):
        return Refused(400, f"the request's target is {_shown(target)}, expected a path such as /healthz")
    return parts


def _name(host: str) -> str | None:
    """The name or address of `NAME`, `NAME:PORT` or `[ADDRESS]:PORT`, in lower case; None if it is neither."""
    found = _HOST.fullmatch(host.strip().lower())
    return (found[1] or found[2]).rstrip(".") if found else None


def _is_own(name: str, address: str) -> bool:
    """Whether it is an address: of the loopback, or the one that the request came in at."""
    try:
        found = ipaddress.ip_address(name)
        return found.is_loopback or found == ipaddress.ip_address(address)
    except ValueError:
        return False


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
