"""`chronolet why`: explains why a container restarted, or why a pod is in its state.

Input: a pod, and which restart. Output: one sentence, the chain of causes, what the log lacks, a timeline; or the same
as JSON, or the chain as a Graphviz graph. Next: `history.why`, which finds the answer in the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from chronolet.cli.completion import candidates
from chronolet.cli.errors import Failure
from chronolet.cli.history.fields import in_camel_case
from chronolet.cli.naming import pod_name
from chronolet.cli.options import Command, at_option, namespace_option, with_settings
from chronolet.cli.printing import ages
from chronolet.cli.printing.progress import progress
from chronolet.cli.printing.table import plain
from chronolet.cli.session import Session, session
from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.history.entries import before
from chronolet.history.gaps import Gap, available
from chronolet.history.why.answer import Answer, Question, WhyError, answer
from chronolet.history.why.facts import Fact, Missing, concerns_answer, wanted, written_after
from chronolet.history.why.lives import pod_history
from chronolet.history.why.records import PodHistory
from chronolet.history.why.sentences import clause
from chronolet.kernel.storage.store import HistoryMissing
from chronolet.node.settings.settings import Settings
from chronolet_schemas import codec
from chronolet_schemas.envelope import START, Entry, Event, Position
from chronolet_schemas.times import Stamp, stamp_of


@click.command(cls=Command)
@with_settings()
@click.argument("name", metavar="POD", shell_complete=candidates.pods)
@namespace_option
@click.option("-c", "--container", metavar="NAME", shell_complete=candidates.containers, help="only this container")
@click.option(
    "--nth",
    type=click.IntRange(min=1),
    metavar="N",
    help="the restart with this number, counted from 1 under the pod's uid",
)
@at_option
@click.option("-o", "--output", type=click.Choice(["json", "dot"]), help="output format: one JSON object, or a graph")
def command(
    *,
    settings: Settings,
    name: str,
    namespace: str,
    container: str | None,
    nth: int | None,
    at: str | None,
    output: str | None,
) -> None:
    """Explain why a container restarted, or why a pod is not ready, rejected, deleted, ...

    With --at: the last restart up to that moment.
    """
    pod = f"{namespace}/{pod_name(name)}"
    if nth is not None and at is not None:
        raise click.UsageError("--nth and --at exclude each other: both select a restart.")
    with session(settings, at=at) as node, progress("reading the node's log"):
        reading = _Reading(node, pod)
        history = reading.history()
        if not history.lives and not history.requests:
            raise node.lacks(pod, f"{pod}{_up_to(at)}", reading.unread)
        try:
            found = answer(history, Question(container or "", nth, restart=at is not None))
        except WhyError as error:
            raise Failure("; ".join((str(error), *reading.gaps))) from error
        lines = tuple(_SHOWN[output](found, reading))
    for line in lines:
        click.echo(line)
    for gap in reading.gaps:
        click.echo(f"note: {gap}; the answer is from the other entries", err=True)


def _up_to(at: str | None) -> str:
    return f" up to {at}" if at is not None else ""


class _Reading:
    """The part of the log that was read. `unread`: why entries could not be read."""

    def __init__(self, node: Session, pod: str) -> None:
        self._node = node
        self._pod = pod
        self.unread: list[str] = []
        self._first: Stamp | None = None

    @property
    def gaps(self) -> list[str]:
        """What the answer was made without: what came before the history, and what could not be read."""
        beginning = self._node.beginning()
        if beginning == START:
            return self.unread
        return [f"the history begins after entry #{beginning.n}, and what came before is not known", *self.unread]

    def history(self) -> PodHistory:
        """Read the pod's history; if archived entries are missing, without them."""
        return pod_history(self._pod, self._facts(), self._written_after)

    def begin(self) -> Stamp | None:
        """Return the first entry of the log that can be read; None if there is none.

        A damaged archive file cannot be read from its beginning, but the entries about the pod in it may be.
        """
        found = next((stamp_of(one) for one in self._available(EVERYTHING) if not isinstance(one, Gap)), None)
        return min((one for one in (found, self._first) if one is not None), default=None)

    def _facts(self) -> Iterator[Fact]:
        """Yield the facts about the pod, with a `Missing` for each gap and for each entry that cannot be decoded."""
        chosen = wanted(self._pod)
        for found in self._available(chosen):
            if isinstance(found, Gap):
                self.unread.append(found.text)
                yield Fact(Stamp(found.after, found.after.milliseconds), "", Missing())
            # Without indexes, all entries are read: the answer must not depend on that.
            elif concerns_answer(found, self._pod) and chosen.meets(found):
                stamp = stamp_of(found)
                self._first = self._first or stamp
                try:
                    event = codec.decode(found.type, found.data, Event)
                except codec.Undecodable:
                    self._node.unreadable.add(found.position)
                    yield Fact(stamp, "", Missing())
                else:
                    yield Fact(stamp, found.entity, event, found.actor)

    def _available(self, chosen: Wanted) -> Iterator[Entry | Gap]:
        store = self._node.store
        return available(lambda after: self._read(after, chosen), lambda: store.archived()[1])

    def _read(self, after: Position, chosen: Wanted) -> Iterator[Entry]:
        return self._node.entries(after, chosen, prefer_archive=True)

    def _written_after(self, milliseconds: int, upto: Position) -> int:
        after = before(milliseconds + 1)
        if after < self._node.beginning():
            return 0  # entries that a record of the past does not have may have been written
        try:
            return written_after(map(stamp_of, self._read(after, EVERYTHING)), milliseconds, upto)
        except HistoryMissing:
            return 0


def _as_text(found: Answer, reading: _Reading) -> Iterator[str]:
    yield plain(found.sentence)
    yield ""
    yield "Because:"
    for cause in found.chain:
        yield f"  {_moment(cause.at, cause.position)}  {plain(clause(cause))}"
    if found.settled_by:
        yield ""
        yield "Not known. This would have settled it:"
        yield from (f"  {plain(line)}" for line in found.settled_by)
    yield ""
    yield "Timeline:"
    if found.left_out:
        yield f"  ... {found.left_out} earlier steps; `chronolet log --pod {found.pod}` prints all"
    for step in found.timeline:
        yield f"  {_moment(step.at, step.position)}  +{step.after / 1000:.3f} s  {plain(step.text)}"
    begin = reading.begin()
    if begin is not None:
        yield ""
        yield f"The history begins at {_moment(begin.milliseconds, str(begin.position))}."


def _moment(milliseconds: int, position: str) -> str:
    return f"{ages.rfc3339(milliseconds, fraction=True)}  #{position.partition('-')[2]}"


def _as_json(found: Answer, reading: _Reading) -> Iterator[str]:
    content: dict[str, Any] = in_camel_case(found)
    for one, cause in zip(content["chain"], found.chain, strict=True):
        one["text"] = clause(cause)
    begin = reading.begin()
    if begin is not None:
        content["history"] = {"begin": str(begin.position), "gaps": reading.gaps}
    yield json.dumps(content)


def _as_dot(found: Answer, _reading: _Reading) -> Iterator[str]:
    """Yield a graph: each cause leads to the next one, and the last one to the answer."""
    yield "digraph why {"
    yield "  rankdir=TB; node [shape=box];"
    for number, cause in enumerate(found.chain):
        yield f"  c{number} [label={_label(clause(cause), _moment(cause.at, cause.position))}];"
    yield f"  answer [label={_label(found.sentence)}, style=bold];"
    for number, cause in enumerate(found.chain):
        following = found.chain[number + 1 : number + 2]
        later = f" [label={_label(f'+{max(following[0].at - cause.at, 0) / 1000:.3f} s')}]" if following else ""
        yield f"  c{number} -> {f'c{number + 1}' if following else 'answer'}{later};"
    yield "}"


def _label(*lines: str) -> str:
    escaped = (plain(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'


_SHOWN = {None: _as_text, "json": _as_json, "dot": _as_dot}
