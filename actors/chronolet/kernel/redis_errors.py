"""What Redis's errors mean to the kernel: one clear line each, and whether waiting may help.

Comes in: an exception of redis-py and where the server is. Goes out: `StoreUnreachable` or `StoreBroken`. Next: raised
by `redis_connection` and `redis_store` to hosts, supervisor and CLI.
"""

from __future__ import annotations

import redis
from redis.exceptions import AuthenticationError, AuthorizationError

from chronolet.kernel.store import StoreBroken, StoreUnreachable

LOST = (redis.ConnectionError, redis.TimeoutError, OSError)
"""The call was not answered: it may or may not have happened."""

_REFUSALS: tuple[tuple[tuple[str, ...], bool, str], ...] = (
    (
        ("WRONGPASS", "NOAUTH", "invalid password", "invalid username", "Authentication required", "unauthenticated"),
        False,
        "refuses the password: give the right one by --redis-password-file or CHRONOLET_REDIS_PASSWORD",
    ),
    (("CERTIFICATE_VERIFY_FAILED",), False, "has a certificate that is not trusted: add ?ssl_ca_certs=FILE to the URL"),
    (("WRONG_VERSION_NUMBER",), False, "does not speak TLS there: use redis:// or its TLS port"),
    (("NOPERM", "no permissions"), False, "does not permit this user what chronolet needs"),
    (("READONLY", "read only replica"), True, "is a read-only replica: give the URL of the master"),
    (
        ("OOM", "command not allowed when used memory"),
        True,
        "is full: raise its maxmemory (redis-cli config set maxmemory ...), or delete what else it holds",
    ),
    (("MISCONF",), True, "cannot write to its disk: see its log, make room on its disk"),
    (("LOADING", "loading the dataset"), True, "is still loading its data"),
    (("BUSY ", "Redis is busy"), True, "is busy with a script that takes too long"),
    (("MASTERDOWN", "NOREPLICAS"), True, "has no good replication link"),
    (("CLUSTERDOWN", "MOVED", "ASK ", "TRYAGAIN"), True, "is a cluster that cannot serve this node's keys here"),
    (("max number of clients",), True, "has no room for another client (maxclients)"),
)


def translated(error: BaseException, where: str) -> StoreUnreachable | StoreBroken:
    """The kernel's word for an error of redis-py; `where` names the server."""
    text = " ".join(str(error).split()) or type(error).__name__
    for signs, healing, meaning in _REFUSALS:
        if any(sign in text for sign in signs):
            return StoreUnreachable(f"Redis at {where} {meaning}: {text}", healing=healing)
    if isinstance(error, AuthenticationError | AuthorizationError):
        return StoreUnreachable(f"Redis at {where} refuses the password: {text}", healing=False)
    if isinstance(error, redis.TimeoutError):
        return StoreUnreachable(f"Redis at {where} does not answer in time: {text}")
    if isinstance(error, LOST):
        return StoreUnreachable(f"Redis at {where} cannot be reached (is it running?): {text}")
    return StoreBroken(f"Redis at {where} refuses: {text}")


def no_function(error: BaseException) -> bool:
    """Whether the server has lost the function library (emptied, or replaced by a fresh one)."""
    return "Function not found" in str(error)
