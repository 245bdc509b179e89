"""Makes the collectors run now and reports the result.

Input: a node. Output: a line for each object that was removed or could not be removed, according to the log; exit
status 1 if a run or a removal failed. If a run is already in progress, the new one starts after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import msgspec

from chronolet.cli.errors import Failure
from chronolet.cli.get.images import size
from chronolet.cli.printing import table
from chronolet.cli.printing.plain import dump
from chronolet.cli.sending import Watch, ask, follow, new_request
from chronolet.cli.session import Session, session
from chronolet.node.settings.settings import Settings
from chronolet_schemas import codec, container_gc, image_gc
from chronolet_schemas.envelope import Command, Event, Position
from chronolet_schemas.keys import Shard

_Finished = image_gc.RunFinished | container_gc.RunFinished
_Dealt = image_gc.ImageEvent | container_gc.VictimEvent


def run(settings: Settings, output: str | None, *, unused: bool, left_alone: bool = False) -> int:
    """Run the image collector, then the container collector, and return the exit status.

    `left_alone`: remove only dead containers of a lost log, and no images.
    """
    with session(settings) as node:
        found: dict[str, Any] = {}
        if not left_alone:
            images = image_gc.CollectImages(request=new_request(), unused=unused)
            found["images"] = _collected(node, "image_gc", images, quiet=bool(output))
        containers = container_gc.CollectContainers(request=new_request(), left_alone=left_alone)
        found["containers"] = _collected(node, "container_gc", containers, quiet=bool(output))
    if output:
        click.echo(dump(found, output))
    return int(any(one["error"] or one["failed"] for one in found.values()))


def _collected(node: Session, kind: str, command: Command, *, quiet: bool) -> dict[str, Any]:
    """Request one run and wait until it finishes. Print its result unless `quiet`, and return it as plain data."""
    accepted = ask(node, command, Shard(kind))[0].entry.position
    dealt: list[_Dealt] = []
    for event in _events(node, kind, accepted):
        if isinstance(event, image_gc.RunStarted | container_gc.RunStarted) and event.request == command.request:
            dealt.clear()  # earlier events belong to a run already in progress
        if isinstance(event, image_gc.ImageEvent | container_gc.VictimEvent):
            dealt.append(event)
        if isinstance(event, image_gc.RunFinished | container_gc.RunFinished) and event.request == command.request:
            mine = [one for one in dealt if one.run == event.run]
            if not quiet:
                _print(event, mine)
            return _plain(event, mine)
    raise AssertionError("`follow` ended")


def _events(node: Session, kind: str, after: Position) -> Iterator[Event]:
    owner = Watch(node, "the run continues when an agent hosts it again", Shard(kind))
    for entry in follow(node.store, after, owner.look):
        if entry.entity == f"{kind}/node":
            try:
                yield codec.decode(entry.type, entry.data, Event)
            except codec.Undecodable as error:
                raise Failure(
                    f"cannot decode the node's response at {entry.position}, from another release: {error}"
                ) from error


def _plain(finished: _Finished, dealt: Sequence[_Dealt]) -> dict[str, Any]:
    run = camel_case(msgspec.to_builtins(finished))
    objects = [camel_case(msgspec.to_builtins(one)) for one in dealt]
    return {
        **{name: run.get(name, default) for name, default in _DEFAULTS.items()},
        **run,
        "objects": [{**one, "removed": "error" not in one} for one in objects],
    }


def camel_case(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields under camelCase names, as in kubectl's JSON: `usagePercent`. Values are unchanged."""
    return {re.sub("_([a-z])", lambda found: found[1].upper(), name): value for name, value in fields.items()}


_DEFAULTS: Mapping[str, Any] = {"removed": 0, "failed": 0, "error": "", "kept": {}}


def _print(finished: _Finished, dealt: Sequence[_Dealt]) -> None:
    what = "image" if isinstance(finished, image_gc.RunFinished) else "container"
    if dealt:
        table.show(("RESULT", "OBJECT", "NAME", "SIZE", "RULE"), [_row(one) for one in dealt])
    kept = ", ".join(f"{count} {why.replace('_', ' ')}" for why, count in sorted(finished.kept.items()))
    freed = (
        f", {size(finished.freed_bytes)} freed{_wanted(finished)}" if isinstance(finished, image_gc.RunFinished) else ""
    )
    click.echo(f"{what}s: {finished.removed} removed{freed}, {finished.failed} refused; kept: {kept or 'none'}.")
    if finished.error:
        click.echo(f"error: {finished.error}", err=True)


def _wanted(finished: _Finished) -> str:
    wanted = finished.wanted_bytes if isinstance(finished, image_gc.RunFinished) else None
    return "" if wanted is None else f" of {size(wanted)} wanted"


def _row(one: _Dealt) -> tuple[str, ...]:
    error = getattr(one, "error", "")
    result = f"refused: {error}" if error else "removed"
    if isinstance(one, image_gc.ImageEvent):
        return (result, "image", one.name, size(one.size_bytes), one.reason)
    return (result, one.what.replace("_", " "), one.name, "", one.rule.replace("_", " "))
