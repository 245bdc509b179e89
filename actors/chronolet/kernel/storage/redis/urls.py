"""Validates and parses URLs of a Redis server, and keeps their passwords out of messages.

Input: text from a setting. Output: a parsed `Target`; the URL without user, password and options; the URL with a
password from another setting; a `RedisUrlError`, whose text never contains a part that may be secret. Anything
unexpected in a URL is refused. Next: `wire`, which connects to a `Target`; the node's settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

SCHEMES = ("unix", "redis", "rediss")
EXPECTED = "unix://SOCKET, redis://HOST[:PORT][/DB] or rediss://HOST[:PORT][/DB]"
_YES = ("true", "yes", "1")
_NAME = re.compile(r"[a-z_]{1,40}")
"""Pattern of option names that are safe to show. Other text may be part of a password that contains a question mark."""


_PORT = 6379


class Tls(NamedTuple):
    """TLS settings: how the server is verified and how the client authenticates. `ca_file`, `certificate` and `key` are
    paths of PEM files, `ca_folder` is the path of a folder of such files; "" means none.
    """

    ca_file: str
    ca_folder: str
    certificate: str
    key: str
    key_password: str
    verify: str
    """One of none, optional, required."""
    check_hostname: bool


class Target(NamedTuple):
    """Where a server is and how to log in. `socket` is a path, or "" if `host` and `port` apply."""

    socket: str
    host: str
    port: int
    database: int
    username: str
    password: str
    tls: Tls | None


class RedisUrlError(ValueError):
    """The URL is unusable. The text contains no part of the URL except names of options."""


def _any(value: str) -> bool:
    return bool(value)


def _number(value: str) -> bool:
    return value.isascii() and value.isdigit()


def _truth(value: str) -> bool:
    return value.lower() in (*_YES, "false", "no", "0")


_OPTIONS: dict[str, Callable[[str], bool]] = {"db": _number, "username": _any, "password": _any}
_TLS_OPTIONS: dict[str, Callable[[str], bool]] = {
    **_OPTIONS,
    "ssl_ca_certs": _any,
    "ssl_ca_path": _any,
    "ssl_certfile": _any,
    "ssl_keyfile": _any,
    "ssl_password": _any,
    "ssl_cert_reqs": lambda value: value in ("none", "optional", "required"),
    "ssl_check_hostname": _truth,
}


def check(url: str) -> None:
    """Validate a URL. Raises RedisUrlError if it is not a URL of a Redis server, names no server, has an invalid
    database, or has an option that is unknown, invalid or repeated.
    """
    parts = _split(url)
    _check_place(parts)
    _check_options(parts)


def target(url: str) -> Target:
    """Parse a checked URL. User and password before the host take precedence over those in options; a database in the
    options takes precedence over one in the path.
    """
    parts = _split(url)
    options = dict(parse_qsl(parts.query))
    is_socket = parts.scheme == "unix"
    in_path = "" if is_socket else parts.path.strip("/")
    return Target(
        socket=unquote(parts.path) if is_socket else "",
        host="" if is_socket else unquote(parts.hostname or ""),
        port=parts.port or _PORT,
        database=int(options.get("db") or in_path or 0),
        username=unquote(parts.username or "") or options.get("username", ""),
        password=unquote(parts.password or "") or options.get("password", ""),
        tls=_tls(options) if parts.scheme == "rediss" else None,
    )


def _tls(options: Mapping[str, str]) -> Tls:
    return Tls(
        ca_file=options.get("ssl_ca_certs", ""),
        ca_folder=options.get("ssl_ca_path", ""),
        certificate=options.get("ssl_certfile", ""),
        key=options.get("ssl_keyfile", ""),
        key_password=options.get("ssl_password", ""),
        verify=options.get("ssl_cert_reqs", "required"),
        check_hostname=options.get("ssl_check_hostname", "true").lower() in _YES,
    )


def where(url: str) -> str:
    """Return the URL without user, password and options."""
    parts = _split(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def has_password(url: str) -> bool:
    """Whether a checked URL contains a password, of the server or of the TLS key."""
    parts = _split(url)
    return bool(parts.password) or any(name.endswith("password") for name, _ in parse_qsl(parts.query))


def with_password(url: str, password: str) -> str:
    """Return the checked URL with this password."""
    parts = _split(url)
    user, _, place = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.partition(':')[0]}:{quote(password, safe='')}@{place}").geturl()


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = None, None
    # A `#`, `/` or `?` in a password ends the server part of the URL; the rest would be taken for a path.
    if parts is None or parts.scheme not in SCHEMES or port == 0 or "#" in url or "@" in f"{parts.path}{parts.query}":
        raise RedisUrlError(
            f"is not a URL of a Redis server, expected {EXPECTED}; in a password write /, ?, #, @ as %XX"
        )
    return parts


def _check_place(parts: SplitResult) -> None:
    if parts.scheme == "unix":
        if parts.netloc.rpartition("@")[2] or len(parts.path) < len("/s"):
            raise RedisUrlError("does not name a socket by its absolute path, expected unix:///PATH")
    elif not parts.hostname:
        raise RedisUrlError(f"names no host, expected {EXPECTED}")
    elif parts.path.strip("/") and not _number(parts.path.strip("/")):
        raise RedisUrlError("names a database that is not a number, expected redis://HOST[:PORT][/DB]")


def _check_options(parts: SplitResult) -> None:
    known = _TLS_OPTIONS if parts.scheme == "rediss" else _OPTIONS
    found = parse_qsl(parts.query, keep_blank_values=True)
    for name, value in found:
        if name not in known:
            shown = f"the unknown option {name!r}" if _NAME.fullmatch(name) else "an unknown option"
            raise RedisUrlError(f"has {shown}, expected one of {', '.join(known)}")
        if not known[name](value):
            raise RedisUrlError(f"has the option {name!r} with an invalid value")
    if len({name for name, _ in found}) < len(found):
        raise RedisUrlError("has the same option twice")
