"""Loads the function libraries into the server, and checks that the server is suitable (docs/design.md, Redis).

Input: a channel. Output: warnings, or StoreUnreachable(healing=False). A published library is never replaced: the same
name with another text is an error for the operator to resolve. The text is compared byte for byte, including comments.
Earlier releases do the same, so `functions.lua` must not be reworded. Next: `store.check`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from chronolet.kernel.storage.redis.connection import Channel
from chronolet.kernel.storage.redis.errors import ResponseError, translated
from chronolet.kernel.storage.redis.replies import text
from chronolet.kernel.storage.store import StoreUnreachable

LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "chronolet_1": ("functions.lua",),
    "chronolet_2": ("leases.lua",),
    "chronolet_steps_2": ("steps.lua",),
    "chronolet_site_1": ("site.lua",),
    "chronolet_record_1": ("record.lua",),
    "chronolet_members": ("members.lua",),
    "chronolet_shards_1": ("shards.lua",),
    "chronolet_show": (
        "show/json.lua",
        "show/times.lua",
        "show/arguments.lua",
        "show/streams.lua",
        "show/events.lua",
        "show/actors.lua",
    ),
}
"""The libraries by name, each with its files, whose texts are joined in this order. Former releases know only the
libraries that they had, and leave the others alone.
"""
OLDEST = (7, 0)


@functools.cache
def code(name: str) -> str:
    """Return a library's source code, as loaded into the server."""
    from importlib import resources  # noqa: PLC0415 - slow to load, and a command that only reads needs no function

    folder = resources.files("chronolet.kernel.storage.redis").joinpath("functions")
    return "\n".join(folder.joinpath(file).read_text(encoding="utf-8") for file in LIBRARIES[name])


def load(channel: Channel) -> None:
    """Load the libraries that are missing. Raises StoreUnreachable(healing=False) if the server has a library of the
    same name with different code.
    """
    for name in LIBRARIES:
        _load(channel, name)


def _load(channel: Channel, name: str) -> None:
    loaded = _code_on_server(channel, name)
    if loaded is None:
        try:
            channel.call("FUNCTION", "LOAD", code(name))
        except ResponseError as error:
            if "already exists" not in str(error):
                raise translated(error, channel.where) from error
        loaded = _code_on_server(channel, name)
    if loaded != code(name):
        raise StoreUnreachable(
            f"Redis at {channel.where} has a function library {name} with other code than this release's:"
            " use the release that loaded it, or stop the agents of all nodes on this server and"
            f" run `redis-cli FUNCTION DELETE {name}`",
            healing=False,
        )


def _code_on_server(channel: Channel, name: str) -> str | None:
    try:
        libraries = channel.call("FUNCTION", "LIST", "LIBRARYNAME", name, "WITHCODE")
    except ResponseError as error:
        raise translated(error, channel.where) from error
    for library in libraries:
        found = dict(zip(library[::2], library[1::2], strict=True))
        return text(found[b"library_code"])
    return None


def inspect_server(channel: Channel) -> list[str]:
    """Return warnings about the server's settings. Raises StoreUnreachable(healing=False) if the server cannot store a
    log safely.
    """
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
        return [f"{where} keeps no append-only file: its data is lost when it ends; set appendonly yes"]
    if _loads_truncated_files(channel):
        remedy = "set it to no, and run redis-check-aof --fix if the server then refuses its file"
        return [f"{where} has aof-load-truncated yes: half of a write may survive a crash; {remedy}"]
    return []


def _loads_truncated_files(channel: Channel) -> bool:
    """Whether the server loads truncated files (see `redis_server.append_only`); False if the setting is unreadable."""
    try:
        return text(channel.call("CONFIG", "GET", "aof-load-truncated")[1]) == "yes"
    except (ResponseError, IndexError):
        return False


def _new_enough(version: str) -> bool:
    numbers = version.split(".")[:2]
    return all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) >= OLDEST


def _info(channel: Channel, *sections: str) -> Mapping[str, str]:
    lines = text(channel.call("INFO", *sections)).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)
