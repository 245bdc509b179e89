"""Combines adjacent log entries into one message, for kinds that request it (`Kind.batches`).

Input: the items waiting for a host. Output: the same items in the same order, except that consecutive entries that
belong together are combined into one input. Consuming this input moves the cursor to the last of the entries. If the
host decides one message per step, each entry forms a batch of its own. Next: `host`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chronolet.kernel.kind import Batcher
from chronolet.kernel.step.input import Input
from chronolet_schemas.envelope import Event, Position
from chronolet_schemas.times import Stamp


def batched(batches: Mapping[type[Event], Batcher], items: Iterable[Any], after: Position) -> list[Any]:
    """Return `items` with batches combined. Entries up to `after` are left as they are: they have been decided, and the
    host skips them.
    """
    found: list[Any] = []
    run: list[Input] = []
    for item in items:
        joins = isinstance(item, Input) and item.source == "log" and item.at > after and type(item.message) in batches
        if run and not (joins and _alike(run[0], item)):
            found.append(_combined(batches, run))
            run = []
        if joins:
            run.append(item)
        else:
            found.append(item)
    return [*found, _combined(batches, run)] if run else found


def _alike(one: Input, other: Input) -> bool:
    return type(one.message) is type(other.message) and one.keys == other.keys


def _combined(batches: Mapping[type[Event], Batcher], run: list[Input]) -> Input:
    last = run[-1]
    message = batches[type(last.message)]([(Stamp(item.at, item.time), item.message) for item in run])  # type: ignore[index]
    return last._replace(message=message, entries=len(run))
