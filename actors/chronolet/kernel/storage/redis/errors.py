"""What Redis's errors mean to the kernel: one clear line each, and whether waiting may help.

Comes in: what a server refuses by, or a `RedisError` of `redis_wire` and where the server is. Goes out: the exception
for it; `StoreUnreachable` or `StoreBroken`. Next: raised by `redis_connection` and `redis_store` to hosts, supervisor
and CLI.
"""

from __future__ import annotations

from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable


class RedisError(Exception):
    """A call to Redis did not end well."""


class ResponseError(RedisError):
    """The server refuses the command; the text is its own, with its code in front."""


class ConnectionLost(RedisError):  # noqa: N818 - what has happened
    """The call was not answered: it may or may not have happened. Or the server refuses to serve this connection."""


class AnswerLate(ConnectionLost):
    """The server was silent for too long."""


class LoginRefused(ConnectionLost):
    """The server wants another password, or one at all."""


_LOGIN = ("NOAUTH", "WRONGPASS", "ERR invalid password", "ERR AUTH ")
_UNSERVED = ("LOADING", "ERR max number of clients reached")

_REFUSALS: tuple[tuple[tuple[str, ...], bool, str], ...] = (
    (
        ("WRONGPASS", "NOAUTH", "ERR invalid password", "unauthenticated"),
        False,
        "refuses the password: give the right one by --redis-password-file or CHRONOLET_REDIS_PASSWORD",
    ),
    (("CERTIFICATE_VERIFY_FAILED",), False, "has a certificate that is not trusted: add ?ssl_ca_certs=FILE to the URL"),
    (("WRONG_VERSION_NUMBER",), False, "does not speak TLS there: use redis:// or its TLS port"),
    (("NOPERM",), False, "does not permit this user what chronolet needs"),
    (("READONLY",), True, "is a read-only replica: give the URL of the master"),
    (
        ("OOM",),
        True,
        "is full: raise its maxmemory (redis-cli config set maxmemory ...), or delete what else it holds",
    ),
    (("MISCONF",), True, "cannot write to its disk: see its log, make room on its disk"),
    (("LOADING",), True, "is still loading its data"),
    (("BUSY ",), True, "is busy with a script that takes too long"),
    (("MASTERDOWN", "NOREPLICAS"), True, "has no good replication link"),
    (("CLUSTERDOWN", "MOVED", "ASK ", "TRYAGAIN"), True, "is a cluster that cannot serve this node's keys here"),
    (("max number of clients",), True, "has no room for another client (maxclients)"),
)


def replied(text: str) -> RedisError:
    """What an error reply is."""
    if text.startswith(_LOGIN):
        return LoginRefused(text)
    return ConnectionLost(text) if text.startswith(_UNSERVED) else ResponseError(text)


def translated(error: BaseException, where: str) -> StoreUnreachable | StoreBroken:
    """The kernel's word for an error; `where` names the server."""
    text = " ".join(str(error).split()) or type(error).__name__
    for signs, healing, meaning in _REFUSALS:
        if any(sign in text for sign in signs):
            return StoreUnreachable(f"Redis at {where} {meaning}: {text}", healing=healing)
    if isinstance(error, LoginRefused):
        return StoreUnreachable(f"Redis at {where} refuses the password: {text}", healing=False)
    if isinstance(error, AnswerLate):
        return StoreUnreachable(f"Redis at {where} does not answer in time: {text}")
    if isinstance(error, ConnectionLost):
        return StoreUnreachable(f"Redis at {where} cannot be reached (is it running?): {text}")
    return StoreBroken(f"Redis at {where} refuses: {text}")


def no_function(error: BaseException) -> bool:
    """Whether the server has lost the function library (emptied, or replaced by a fresh one)."""
    return "Function not found" in str(error)
