"""The Function library on the server, and whether the server can serve at all (DESIGN 4, last lines).

Comes in: a channel. Goes out: warnings, or StoreUnreachable that will not heal by waiting. A published library is never
replaced: the same name with other code is an error for people to resolve. Next: `redis_store.check`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources

from chronolet.kernel.storage.redis.connection import Channel
from chronolet.kernel.storage.redis.errors import ResponseError, translated
from chronolet.kernel.storage.redis.replies import text
from chronolet.kernel.storage.store import StoreUnreachable

NAME = "chronolet_1"
OLDEST = (7, 0)


@functools.cache
def code() -> str:
    """The library's source, as it is loaded."""
    return resources.files("chronolet.kernel.storage.redis").joinpath("functions.lua").read_text(encoding="utf-8")


def load(channel: Channel) -> None:
    """Load the library where it is missing; refuse one of the same name with other code."""
    there = _code_on_server(channel)
    if there is None:
        try:
            channel.call("FUNCTION", "LOAD", code())
        except ResponseError as error:
            if "already exists" not in str(error):
                raise translated(error, channel.where) from error
        there = _code_on_server(channel)
    if there != code():
        raise StoreUnreachable(
            f"Redis at {channel.where} has a function library {NAME} with other code than this release's:"
            " use the release that loaded it, or, with every agent of all its nodes stopped,"
            f" remove it by `redis-cli FUNCTION DELETE {NAME}`",
            healing=False,
        )


def _code_on_server(channel: Channel) -> str | None:
    try:
        libraries = channel.call("FUNCTION", "LIST", "LIBRARYNAME", NAME, "WITHCODE")
    except ResponseError as error:
        raise translated(error, channel.where) from error
    for library in libraries:
        found = dict(zip(library[::2], library[1::2], strict=True))
        return text(found[b"library_code"])
    return None


def inspect_server(channel: Channel) -> list[str]:
    """Warnings about the server's settings. StoreUnreachable(healing=False) for one that cannot keep a log at all."""
    try:
        info = _info(channel)
    except ResponseError as error:
        raise translated(error, channel.where) from error
    where = f"Redis at {channel.where}"
    version = info.get("redis_version", "unknown")
    if not _new_enough(version):
        raise StoreUnreachable(
            f"{where} is version {version}, but functions need {OLDEST[0]}.{OLDEST[1]} or newer (or Valkey)",
            healing=False,
        )
    if info.get("role") == "slave":
        raise StoreUnreachable(f"{where} is a read-only replica: give the URL of the master", healing=False)
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise StoreUnreachable(
            f"{where} has maxmemory-policy {policy}, which may evict the log: set it to noeviction", healing=False
        )
    if info.get("aof_enabled") == "0":
        return [f"{where} keeps no append-only file: what it knows dies with it; set appendonly yes"]
    if _leaves_half_a_transaction(channel):
        remedy = "set it to no, and run redis-check-aof --fix if the server then refuses its file"
        return [f"{where} has aof-load-truncated yes: a write that a crash cuts short may come back in half; {remedy}"]
    return []


def _leaves_half_a_transaction(channel: Channel) -> bool:
    """Whether the server repairs its file by itself, as `append_only` tells. One that does not say may be fine."""
    try:
        return text(channel.call("CONFIG", "GET", "aof-load-truncated")[1]) == "yes"
    except (ResponseError, IndexError):
        return False


def whole_seconds_up(channel: Channel) -> int:
    """So many seconds the server has been up, and less than two more: it counts from one full second to another."""
    try:
        return max(0, int(_info(channel, "server")["uptime_in_seconds"]) - 1)
    except ResponseError as error:
        raise translated(error, channel.where) from error


def _new_enough(version: str) -> bool:
    numbers = version.split(".")[:2]
    return all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) >= OLDEST


def _info(channel: Channel, *sections: str) -> Mapping[str, str]:
    lines = text(channel.call("INFO", *sections)).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)
