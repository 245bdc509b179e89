"""`chronolet drain` and `chronolet undrain`: let a process hand over all its shards, and take its share again.

Input: the name of a process. Output: a request in the node's Redis, which every process sees; one line per shard that
has moved. Next: `ownership.sharing`, through which the processes carry out the request.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import click

from chronolet.cli.errors import Failure
from chronolet.cli.options import Command, with_settings
from chronolet.cli.session import Session, session
from chronolet.kernel.storage.members import Survey
from chronolet.kernel.storage.store import owner_of
from chronolet.node.settings.settings import ALL_ACTORS, Settings
from chronolet.node.settings.values import duration
from chronolet_schemas.keys import Shard

_PAUSE_SECONDS = 0.1
PROCESS = click.argument("process", metavar="PROCESS")


@click.command(cls=Command)
@with_settings()
@PROCESS
@click.option("--timeout", default="60s", help="how long to wait for the end [default: 60s]", metavar="DURATION")
def command(*, settings: Settings, process: str, timeout: str) -> None:
    """Hand over all shards of a process to the other processes of the node.

    PROCESS: a name from the column OWNER of `get actors`. The process keeps running and takes no shard until `undrain`,
    or until it is restarted. Nothing is drained unless other processes can host everything that it owns.
    """
    seconds = duration("--timeout", timeout) / 1000
    with session(settings) as node:
        shards = node.shards(*ALL_ACTORS)
        survey = _found(node, process, shards)
        owned = _owned(survey, process)
        if stuck := sorted({shard.kind for shard in owned} - _others_can_host(node, survey, process)):
            raise Failure(
                f"process {process!r}: cannot be drained, because no other process can host {', '.join(stuck)};"
                " start one that does (see --actors of `chronolet run`), or stop this process with SIGTERM"
            )
        node.store.drain(process, drains=True)
        for shard, owner, left in _moves(node, process, owned, time.monotonic() + seconds):
            click.echo(f"{shard} moved to {owner}, {left} left")
        click.echo(f"process {process} is drained; `chronolet undrain {process}` lets it take shards again")


@click.command(cls=Command)
@with_settings()
@PROCESS
def undrain(*, settings: Settings, process: str) -> None:
    """Let a drained process take its share of the shards again."""
    with session(settings) as node:
        survey = _found(node, process, ())
        node.store.drain(process, drains=False)
    was = "takes its share again" if process in survey.drained else "was not drained"
    click.echo(f"process {process} {was}")


def _found(node: Session, process: str, shards: tuple[Shard, ...]) -> Survey:
    """Return a survey of the node's members and of `shards`. Raises Failure if `process` is not alive, or runs a
    release that cannot be drained.
    """
    survey, alive = node.store.survey(shards), node.store.alive()
    if process in survey.members and process in alive:
        return survey
    live = sorted(survey.members.keys() & alive.keys())
    if process in alive:
        raise Failure(f"process {process!r}: it runs a release that cannot be drained; stop it with SIGTERM instead")
    raise Failure(f"process {process!r} does not run; found {', '.join(live) or 'no process'}, expected one of these")


def _owned(survey: Survey, process: str) -> frozenset[Shard]:
    return frozenset(shard for shard, token in survey.tokens.items() if owner_of(token) == process)


def _others_can_host(node: Session, survey: Survey, process: str) -> set[str]:
    alive = node.store.alive()
    return {
        kind
        for name, member in survey.members.items()
        if name != process and name in alive and name not in survey.drained and not member.leaving
        for kind in member.kinds
    }


def _moves(node: Session, process: str, before: frozenset[Shard], deadline: float) -> Iterator[tuple[Shard, str, int]]:
    """Yield each shard that has a new owner, with that owner and the number of shards still to be handed over. Raises
    Failure if `process` ends, or has not handed over all shards by `deadline`.
    """
    while before:
        survey = node.store.survey(tuple(before))
        left = _owned(survey, process)
        before &= left | set(node.shards(*ALL_ACTORS))  # a change of a kind's shard count removes shards
        taken = _new_owners(survey, before - left)
        for number, (shard, owner) in enumerate(sorted(taken.items())):
            yield shard, owner, len(before) - number - 1
        before -= taken.keys()
        if before and process not in survey.counters:
            raise Failure(f"process {process!r} has ended; other processes take over what it owned")
        if before and time.monotonic() > deadline:
            names = ", ".join(map(str, sorted(before)))
            stays = "the request to drain stays in force" if process in survey.drained else "it was restarted meanwhile"
            raise Failure(f"process {process!r}: {names} not handed over in time; {stays}")
        if before:
            time.sleep(_PAUSE_SECONDS)


def _new_owners(survey: Survey, moved: frozenset[Shard]) -> Mapping[Shard, str]:
    owners = {shard: owner_of(survey.tokens.get(shard, "")) for shard in moved}
    return {shard: owner for shard, owner in owners.items() if owner}
