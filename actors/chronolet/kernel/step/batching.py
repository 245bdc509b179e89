"""Entries of the log that are decided together, where a kind asks for that (`Kind.batches`).

Comes in: what waits for a host. Goes out: the same in the same order, each run of batched neighbours as one input
that is consumed as its last entry. What is stepped one message at a time is batched one by one. Next: `host`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chronolet.kernel.kind import Batcher
from chronolet.kernel.step.ledger import Input
from chronolet_schemas.envelope import Event, Position


def batched(batches: Mapping[type[Event], Batcher], items: Iterable[Any], after: Position) -> list[Any]:
    """`items`, batched. What is not later than `after` was decided before: it is left to the host to pass over."""
    found: list[Any] = []
    run: list[Input] = []
    for item in items:
        joins = isinstance(item, Input) and item.source == "log" and item.at > after and type(item.message) in batches
        if run and not (joins and _alike(run[0], item)):
            found.append(_as_one(batches, run))
            run = []
        if joins:
            run.append(item)
        else:
            found.append(item)
    return [*found, _as_one(batches, run)] if run else found


def _alike(one: Input, other: Input) -> bool:
    return type(one.message) is type(other.message) and one.keys == other.keys


def _as_one(batches: Mapping[type[Event], Batcher], run: list[Input]) -> Input:
    last = run[-1]
    message = batches[type(last.message)]([(item.at, item.message) for item in run])  # type: ignore[index]
    return last._replace(message=message)
