"""The states of all entities in both runs, by part of the node, and what follows from them: the timers that only the
changed run has, and whether the outside world would differ. Pure.

Input: states, the kinds that decide. Output: timers; whether a part differs. Next: `two_runs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chronolet.history.deciding_processes import DecidingProcesses
from chronolet.history.recorded_decisions import Recorded
from chronolet.history.whatif.change import Both, Change, EntityName
from chronolet.kernel.kind import Kind


class LatestKinds:
    """The kinds as the latest process decides, by name: as recorded, and with the change."""

    def __init__(
        self, recorded: Iterable[Kind[Any]], changed: Iterable[Kind[Any]], processes: DecidingProcesses
    ) -> None:
        """`processes`: how each process decides with the change."""
        self.recorded = {kind.name: kind for kind in recorded}
        self.changed = {kind.name: kind for kind in changed}
        self._processes = processes
        self._process = ""

    def follow(self, one: Recorded) -> None:
        """Decide from now on as the process that has made this decision."""
        if one.process and one.process != self._process:
            self._process = one.process
            self.changed = {name: self._processes.kind(one.process, name) for name in self.changed}
        self.recorded[one.kind.name] = one.kind


class Parts:
    """The states of the entities of each part that is not estimated."""

    def __init__(self, change: Change, kinds: LatestKinds) -> None:
        self._change = change
        self._kinds = kinds
        self._states: dict[str, dict[EntityName, Both]] = {}
        self._timers: dict[EntityName, int] = {}
        """The timers that the changed run has before the record has one."""
        self._touched: set[EntityName] = set()
        """The entities that have changed since the outside worlds were compared."""

    def names(self) -> list[str]:
        """Return the names of the parts."""
        return list(self._states)

    def of(self, part: str) -> Mapping[EntityName, Both]:
        """Return the states of the entities of a part."""
        return self._states.get(part, {})

    def both(self, part: str, entity: EntityName) -> Both:
        """Return the states of an entity."""
        return self.of(part).get(entity, Both(None, None))

    def set(self, part: str, entity: EntityName, both: Both) -> None:
        """Change the states of an entity."""
        self._timers.pop(entity, None)
        if both == Both(None, None):
            self._states.get(part, {}).pop(entity, None)
            return
        self._states.setdefault(part, {})[entity] = both
        self._touched.add(entity)
        name = entity[0]
        mine = None if both.changed is None else self._kinds.changed[name].decider.due(both.changed)
        if mine is None:
            return
        theirs = None if both.recorded is None else self._kinds.recorded[name].decider.due(both.recorded)
        if theirs is None or mine < theirs:
            self._timers[entity] = mine

    def remove(self, part: str) -> None:
        """Remove a part with its timers."""
        for entity in self._states.pop(part, {}):
            self._timers.pop(entity, None)

    def timers(self, until: int) -> list[EntityName]:
        """Return the entities that have a timer in the changed run, before this time and before the record has one."""
        return [entity for entity, at in self._timers.items() if at < until]

    def timer(self, entity: EntityName) -> int | None:
        """Return when the timer fires that the changed run has before the record has one."""
        return self._timers.get(entity)

    def begins_to_differ(self, part: str) -> bool:
        """Whether the two runs request different effects now, as far as entities have changed since the last call."""
        mine = {one: both for one, both in self.of(part).items() if one in self._touched}
        self._touched -= mine.keys()
        return any(self._noticed(one, both.recorded) != self._noticed(one, both.changed) for one, both in mine.items())

    def _noticed(self, entity: EntityName, state: Any) -> frozenset[Any]:
        if state is None:
            return frozenset()
        return self._change.noticed(entity, self._kinds.changed[entity[0]].decider, state)
