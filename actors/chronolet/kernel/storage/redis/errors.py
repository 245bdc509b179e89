"""Translates Redis's errors for the kernel into one clear line each, and determines whether waiting may help.

Input: the text of an error reply; or a `RedisError` of `wire`, and the server's address. Output: for the text, a
`RedisError`; for a `RedisError`, a `StoreUnreachable` or `StoreBroken`. Next: `connection` and `store`, which raise
them to hosts, supervisor and CLI.
"""

from __future__ import annotations

from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable


class RedisError(Exception):
    """A call to Redis failed."""


class ResponseError(RedisError):
    """The server refuses the command. The text is the server's, starting with its error code."""


class ConnectionLost(RedisError):  # noqa: N818 - the condition's name
    """The call got no reply, and may or may not have been executed; or the server refuses to serve this connection."""


class ReplyLate(ConnectionLost):
    """The server did not reply in time."""


class LoginRefused(ConnectionLost):
    """The server requires a password, or a different one."""


_LOGIN = ("NOAUTH", "WRONGPASS", "ERR invalid password", "ERR AUTH ")
_UNSERVED = ("LOADING", "ERR max number of clients reached")

_REFUSALS: tuple[tuple[tuple[str, ...], bool, str], ...] = (
    (
        ("WRONGPASS", "NOAUTH", "ERR invalid password", "unauthenticated"),
        False,
        "refuses the password: set the right one with --redis-password-file or CHRONOLET_REDIS_PASSWORD",
    ),
    (("CERTIFICATE_VERIFY_FAILED",), False, "has a certificate that is not trusted: add ?ssl_ca_certs=FILE to the URL"),
    (("WRONG_VERSION_NUMBER",), False, "does not speak TLS on this port: use redis:// or its TLS port"),
    (("NOPERM",), False, "denies this user a permission that chronolet needs"),
    (("READONLY",), True, "is a read-only replica: give the URL of the master"),
    (
        ("OOM",),
        True,
        "is full: raise its maxmemory (redis-cli config set maxmemory ...), or delete other data on it",
    ),
    (("MISCONF",), True, "cannot write to its disk: check its log, and free disk space"),
    (("LOADING",), True, "is still loading its data"),
    (("BUSY ",), True, "is busy with a long-running script"),
    (("MASTERDOWN", "NOREPLICAS"), True, "has no good replication link"),
    (("CLUSTERDOWN", "MOVED", "ASK ", "TRYAGAIN"), True, "is a cluster that cannot serve this node's keys here"),
    (("max number of clients",), True, "accepts no more clients: raise its maxclients"),
)


def replied(text: str) -> RedisError:
    """Return the exception for an error reply with this text."""
    if text.startswith(_LOGIN):
        return LoginRefused(text)
    return ConnectionLost(text) if text.startswith(_UNSERVED) else ResponseError(text)


def translated(error: BaseException, where: str) -> StoreUnreachable | StoreBroken:
    """Return the kernel's exception for an error. `where` names the server."""
    text = " ".join(str(error).split()) or type(error).__name__
    for patterns, healing, meaning in _REFUSALS:
        if any(pattern in text for pattern in patterns):
            return StoreUnreachable(f"Redis at {where} {meaning}: {text}", healing=healing)
    if isinstance(error, LoginRefused):
        return StoreUnreachable(f"Redis at {where} refuses the password: {text}", healing=False)
    if isinstance(error, ReplyLate):
        return StoreUnreachable(f"Redis at {where} does not reply in time: {text}")
    if isinstance(error, ConnectionLost):
        return StoreUnreachable(f"Redis at {where} cannot be reached (is it running?): {text}")
    return StoreBroken(f"Redis at {where} refuses the command: {text}")


def no_function(error: BaseException) -> bool:
    """Whether the error says that the server has no function library (it was emptied, or replaced by a new server)."""
    return "Function not found" in str(error)
