"""Decides a log with a change: each recorded input once more, until the outside world would differ. Pure.

Input: the entries of a log in order, a `Change`. Output: `Step`s of both runs side by side. Next:
`chronolet.node.whatif.result`.

As long as the same effects are outstanding in both runs, the outside world is the same, so that each recorded input
would have arrived in the changed run, too: the decisions are exact. An event that only the changed run has is delivered
at once; one that it lacks is not. After the first effect that only one of the runs requests, everything is an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from chronolet.history.deciding_processes import DecidingProcesses, KindsOf
from chronolet.history.recorded_decisions import Damaged, Recorded, RecordedDecisions
from chronolet.history.whatif.change import Both, Certainty, Change, EntityName, Estimating, Step
from chronolet.history.whatif.counterparts import addressed, is_whole, made_again, matched
from chronolet.history.whatif.parts import LatestKinds, Parts
from chronolet.history.whatif.unknown import Unknown
from chronolet.kernel.folding import folded
from chronolet.kernel.kind import Due, Kind
from chronolet_schemas import codec
from chronolet_schemas.envelope import START, Entry, Event, Message, Position, Signal


class TwoRuns:
    """Decides a log with a change while it is read from its beginning."""

    def __init__(
        self, change: Change, kinds: Iterable[Kind[Any]], kinds_of: KindsOf | None = None, after: Position = START
    ) -> None:
        """`kinds`, `kinds_of`: how the record was decided, see `DecidingProcesses`. `after`: the change is in force
        after this position.
        """
        self._change = change
        self._after = after
        kinds = tuple(kinds)
        self._recorded = RecordedDecisions(kinds, kinds_of)
        changed = tuple(change.kinds())
        self._processes = DecidingProcesses(changed, change.kinds_of)
        self._latest = LatestKinds(kinds, changed, self._processes)
        self._parts = Parts(change, self._latest)
        self._begun = False
        self._now = 0
        self._other: dict[str, Event | None] = {}
        """The events of the record that the changed run has with other values, or (None) lacks, by position."""
        self._estimates: dict[str, Estimating] = {}
        self._ended: list[Estimating] = []
        """The estimates of earlier lives of a part."""
        self._unknown = Unknown()
        self.first: Step | None = None
        """The first step after which the outside world differs."""
        self.decisions = 0
        """Number of recorded decisions that were decided with the change, without those that were only estimated."""

    def add(self, entry: Entry) -> Iterator[Step]:
        """Add the next entry of the log."""
        with suppress(ValueError, codec.Undecodable):  # it is counted as damaged below
            self._processes.add(entry)
        for one in self._recorded.add(entry):
            yield from self._next(one)

    def end(self, at: int) -> Iterator[Step]:
        """End the range at this time (milliseconds). A decision of which it has only the first events is left out."""
        for one in self._recorded.end():
            if isinstance(one, Damaged) or is_whole(one):
                yield from self._next(one)
        self._begin()
        yield from self._time_passes(max(at, self._now), ended=True)
        for estimate in self._estimates.values():
            yield from estimate.end(at)

    @property
    def assumed(self) -> bool:
        """Whether something was assumed that the record lacks."""
        return bool(self._unknown.assumed)

    @property
    def unread(self) -> int:
        """Number of recorded decisions about parts of the change whose input is not known."""
        return self._unknown.unread

    def unknown(self) -> Iterator[str]:
        """Yield what the record does not tell, each as a sentence without a full stop."""
        yield from self._unknown.sentences()
        for estimate in (*self._ended, *self._estimates.values()):
            yield from estimate.unknown()

    # -- the record ----------------------------------------------------------------------------------------------
    def _next(self, one: Recorded | Damaged) -> Iterator[Step]:
        if isinstance(one, Damaged):
            if one.entry.position > self._after:
                self._unknown.damaged += 1
                kind, _, key = one.entry.entity.partition("/")
                if (damaged := self._change.part((kind, key))) is not None:
                    self._unknown.assumed.add(damaged)
            return
        entity = (one.kind.name, one.key)
        part = self._change.part(entity)
        if part is None:
            return
        if one.first.position > self._after:
            self._begin()
        self._latest.follow(one)
        self._change.note(one)
        if one.first.position <= self._after:
            return
        self._unknown.unread += one.made is None
        yield from self._time_passes(self._now if one.made is None else one.made.now, part)
        if part in self._estimates and self._change.begins_anew(one):
            yield from self._end_estimate(part)
        if part in self._estimates:
            yield from self._estimates[part].add(one)
        else:
            yield from self._decided(one, entity, part)

    def _begin(self) -> None:
        """Begin the changed run with the states of the record; it may differ at once."""
        if self._begun:
            return
        self._begun = True
        self._begin_from_record()
        for part in self._parts.names():
            entity = next(iter(self._parts.of(part)))
            self._look_outside(part, self._at(self._after.milliseconds, part, entity))

    def _begin_from_record(self, only: str | None = None) -> None:
        """Give the changed run the states of the record: those of one part, or all."""
        for kind, states in self._recorded.states.items():
            for key, state in states.items():
                part = self._change.part((kind, key))
                if part is not None and state is not None and only in (None, part):
                    self._parts.set(part, (kind, key), Both(state, self._change.state((kind, key), state)))

    def _end_estimate(self, part: str) -> Iterator[Step]:
        """End the estimate of a part that begins a new life, which is decided again from the states of the record."""
        estimate = self._estimates.pop(part)
        yield from estimate.end(self._now)
        self._ended.append(estimate)
        self._begin_from_record(part)

    def _decided(self, one: Recorded, entity: EntityName, part: str) -> Iterator[Step]:
        changed = self._parts.both(part, entity).changed
        kind = self._latest.changed[one.kind.name]
        events: tuple[Event, ...] = tuple(one.events)
        if one.made is None:
            self._unknown.assumed.add(part)  # with the change, it may have been another decision
        else:
            self.decisions += 1
            self._make_again(one, part)
            message = self._message(one, kind, changed)
            state = kind.decider.initial if changed is None else changed
            events = () if message is None else self._events(part, entity, state, message, one.made.now)
        if events != tuple(one.events) and self._change.may_be_late(one):
            self._unknown.assumed.add(part)
        new, other = matched(one, events)
        self._other.update(other)
        step = self._stepped(entity, part, one, events)
        yield step
        yield from self._delivered(new, step)
        self._look_outside(part, step)
        # What follows now must not wait for the part's next decision: other parts may differ from now on, too.
        yield from self._repeated(part, entity, step.at, ended=False)

    def _make_again(self, one: Recorded, part: str) -> None:
        """Make a recorded decision again without the change. If the events differ, as those of another release may, a
        difference with the change does not follow from the change alone.
        """
        if made_again(one) != tuple(one.events):
            self._unknown.assumed.add(part)
            self._unknown.other_release += 1

    def _message(self, one: Recorded, kind: Kind[Any], changed: Any) -> Message | None:
        """Return the input of a recorded decision as it is in the changed run; None if it does not arrive there."""
        assert one.made is not None  # noqa: S101 - the caller has checked it
        message, entity = one.made.message, (one.kind.name, one.key)
        state = kind.decider.initial if changed is None else changed
        if isinstance(message, Due):
            at = kind.decider.due(state)
            return Due(at=at) if at is not None and at <= one.made.now else None
        if isinstance(message, Event):
            event = self._other.get(one.group.place.cause, message)
            if event is None or (changed is None and type(event) not in kind.creates):
                return None
            message = event
        elif isinstance(message, Signal):
            found = addressed(self._change, one, message, kind.decider.outstanding(state))
            if found is None:
                return None
            message = found
        return self._change.message(entity, message)

    def _events(self, part: str, entity: EntityName, state: Any, message: Message, now: int) -> tuple[Event, ...]:
        """Decide in the changed run. Where the record leads to a state that no agent gets into, nothing is known."""
        try:
            return tuple(self._latest.changed[entity[0]].decider.decide(state, message, now))
        except Exception as error:  # noqa: BLE001 - a changed run may make a decider fail in any way
            self._unknown.assumed.add(part)
            self._unknown.failed.append(
                f"{type(message).__name__} of {'/'.join(entity)}: {type(error).__name__}: {error}"
            )
            return ()

    # -- the changed run -----------------------------------------------------------------------------------------
    def _stepped(
        self, entity: EntityName, part: str, one: Recorded | None, events: tuple[Event, ...], at: int = 0
    ) -> Step:
        """Fold the events of a decision, and return it as a step."""
        kind = self._latest.changed[entity[0]]
        both = self._parts.both(part, entity)
        changed = both.changed
        for event in events:
            changed = folded(kind.decider, changed, event)
        recorded = both.recorded if one is None else one.after
        if one is not None:
            at = one.first.position.milliseconds if one.made is None else one.made.now
        self._parts.set(part, entity, Both(recorded, changed))
        return Step(
            at,
            None if one is None else one.first.position,
            entity,
            () if one is None else tuple(one.events),
            events,
            self._certainty(part),
        )

    def _certainty(self, part: str) -> Certainty:
        return "estimate" if self.first is not None or part in self._unknown.assumed else "exact"

    def _delivered(self, events: Iterable[Event], after: Step) -> Iterator[Step]:
        """Deliver events that the record does not have, and those that follow from them, at once."""
        waiting = list(events)
        while waiting:
            event = waiting.pop(0)
            for kind in tuple(self._latest.changed.values()):
                route = kind.subscribes.get(type(event))
                for key in () if route is None else route(event):
                    step = self._reaction(kind, (kind.name, key), event, after)
                    if step is not None:
                        yield step
                        waiting += step.changed

    def _reaction(self, kind: Kind[Any], entity: EntityName, message: Message, after: Step) -> Step | None:
        part = self._change.part(entity)
        if part is None:
            return None
        state = self._parts.both(part, entity).changed
        if state is None and type(message) not in kind.creates:
            return None
        found = self._events(part, entity, kind.decider.initial if state is None else state, message, after.at)
        if not found:
            return None
        return self._stepped(entity, part, None, found, after.at)._replace(certainty=after.certainty)

    # -- time ----------------------------------------------------------------------------------------------------
    def _time_passes(self, until: int, part: str | None = None, *, ended: bool = False) -> Iterator[Step]:
        """Let the timers of the changed run fire that the record does not have, and assume what the record leaves out.
        `part`: of which something happens then; None: of all parts.
        """
        for entity in self._parts.timers(until):
            yield from self._timer(entity, until)
        for name in self._parts.names() if part is None else [part]:
            for entity in list(self._parts.of(name)):
                yield from self._repeated(name, entity, until, ended=ended)
        self._now = max(self._now, until)

    def _timer(self, entity: EntityName, until: int) -> Iterator[Step]:
        while (at := self._parts.timer(entity)) is not None and at < until:
            part = self._change.part(entity)
            if part is None or part in self._estimates:
                return
            step = self._reaction(self._latest.changed[entity[0]], entity, Due(at=at), self._at(at, part, entity))
            if step is None:
                return
            yield step
            yield from self._delivered(step.changed, step)
            self._look_outside(part, step)

    def _repeated(self, part: str, entity: EntityName, until: int, *, ended: bool) -> Iterator[Step]:
        if part in self._estimates:
            return
        for at, message in self._change.repeats(entity, self._parts.both(part, entity), until, ended=ended):
            self._unknown.assumed.add(part)
            if message is None:
                continue
            step = self._reaction(self._latest.changed[entity[0]], entity, message, self._at(at, part, entity))
            if step is None:
                continue
            yield step
            yield from self._delivered(step.changed, step)
            self._look_outside(part, step)
            if part in self._estimates:
                return

    def _at(self, at: int, part: str, entity: EntityName) -> Step:
        return Step(at, None, entity, (), (), self._certainty(part))

    # -- the outside world ---------------------------------------------------------------------------------------
    def _look_outside(self, part: str, step: Step) -> None:
        """Begin to estimate a part for which the two runs now request different effects."""
        if not self._parts.begins_to_differ(part):
            return
        self.first = self.first or step
        states = self._parts.of(part)
        self._estimates[part] = self._change.estimating(part, states, step.at, self._latest.changed)
        self._parts.remove(part)
