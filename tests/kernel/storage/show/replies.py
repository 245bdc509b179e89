"""Calls the Redis functions with which people read a node's log, and writes logs for them to read.

Input: a Redis client. Output: a `Reply`: the lines as plain data, and the summary. Next: the tests in this folder.
"""

from __future__ import annotations

import json
from typing import Any

import msgpack
import msgspec
import redis

from chronolet_schemas.keys import Keys

KEYS = Keys("node-1")
MILLISECONDS = 1764250267000
"""2025-11-27T13:31:07Z, since the epoch. The time of entry n that `add` or `fill` writes is n milliseconds later."""


class Reply(msgspec.Struct, frozen=True):
    """A reply. Its last line is the `summary`; `lines` are all lines before it."""

    lines: list[dict[str, Any]]
    summary: dict[str, Any]

    def of(self, field: str) -> list[Any]:
        """Return the given field of each line."""
        return [line[field] for line in self.lines]

    @property
    def numbers(self) -> list[int]:
        """The `n` of each line's position."""
        return [int(line["position"].partition("-")[2]) for line in self.lines]


def call(client: redis.Redis, function: str, key: str, *arguments: object) -> Reply:
    found = client.fcall_ro(function, 1, key, *arguments)
    *lines, summary = [json.loads(line) for line in found]
    assert summary["lines"] == len(lines)
    return Reply(lines, summary)


def show(client: redis.Redis, *arguments: object, key: str = KEYS.log) -> Reply:
    return call(client, "chronolet_show_2", key, *arguments)


def pod(client: redis.Redis, *arguments: object) -> Reply:
    return call(client, "chronolet_pod_1", KEYS.log, *arguments)


def actors(client: redis.Redis, *arguments: object) -> Reply:
    return call(client, "chronolet_actors_1", KEYS.meta, *arguments)


def add(client: redis.Redis, number: int, **fields: Any) -> str:
    """Add an event at `<MILLISECONDS + number>-<number>`; return this position. `fields` replace the default fields;
    `data` is packed as MessagePack.
    """
    data = msgpack.packb(fields.pop("data", {"n": number}))
    event = {"type": "pod.Happened@1", "entity": "pod/default/web", "subject": "", "actor": "pod/0#1", "cause": ""}
    position = f"{MILLISECONDS + number}-{number}"
    client.xadd(KEYS.log, event | fields | {"data": data}, id=position)
    return position


def fill(client: redis.Redis, numbers: range, *, entity: str = "pod/default/web", name: str = "pod.Happened@1") -> None:
    """Add an event for each number, as `add` does, in one call."""
    client.eval(_FILL, 1, KEYS.log, MILLISECONDS, numbers.start, numbers.stop - 1, name, entity)


_FILL = """
for n = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  redis.call('XADD', KEYS[1], string.format('%.0f-%d', ARGV[1] + n, n), 'type', ARGV[4], 'entity', ARGV[5],
    'subject', '', 'actor', 'pod/0#1', 'cause', '', 'data', cmsgpack.pack({n = n}))
end
"""
