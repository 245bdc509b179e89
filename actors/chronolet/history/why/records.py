"""What the log has about one pod: its lives, the runs of its containers, what happened to the node. Pure data.

A life is the time of a pod under one uid. A run is one start of one container, identified by the container's id and the
start time: a container that Docker starts again has two runs with one id. `lives` fills these Structs while it reads;
afterwards, they no longer change.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from chronolet.history.why.facts import E, Fact, Missing, WrittenAfter, never_written
from chronolet_schemas.envelope import START, Position
from chronolet_schemas.pod import PodAdopted
from chronolet_schemas.podspec import Container, Pod


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, and the entry that recorded it. Times are those of the runtime."""

    fact: Fact
    exit_code: int
    reason: str
    started_at: int
    finished_at: int
    message: str = ""
    start_failed: bool = False


class Run(msgspec.Struct, kw_only=True):
    """One run of a container, as far as it is known. `scheduled`: the decision to restart it. `again`: the same
    container was started again by something other than chronolet.
    """

    container: str
    attempt: int
    id: str
    started: Fact
    started_at: int
    exit: Exit | None = None
    scheduled: Fact | None = None
    again: Fact | None = None
    start_missing: bool = False
    """Whether the log lacks the start: `started` is then the entry about the end."""
    facts: list[Fact] = msgspec.field(default_factory=list)
    """All facts about this run, with those about its death and its removal."""

    def of(self, kind: type[E]) -> list[tuple[Fact, E]]:
        """Return the facts about this run whose event has this class."""
        return [(one, one.event) for one in self.facts if isinstance(one.event, kind)]


class Restart(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a run that was, or will be, followed by another run of the same container. `number` counts the
    restarts of this container in the pod's life, from 1.
    """

    number: int
    before: Run
    after: Run | None = None

    @property
    def position(self) -> Position:
        """The entry about the next start; while there is none, about the end. Clocks can be set back, positions not."""
        return self.after.started.position if self.after else _ended(self.before)


class Life(msgspec.Struct, kw_only=True):
    """A pod under one uid. `facts`: everything about it, in log order.

    `adopted`: the pod is older than the log, or than the part of the log that is available.
    """

    uid: str
    manifest: Pod = Pod()
    specs: list[tuple[Position, Pod]] = msgspec.field(default_factory=list)
    """Each accepted spec with the entry that has it, oldest first."""
    adopted: bool = False
    facts: list[Fact] = msgspec.field(default_factory=list)
    runs: list[Run] = msgspec.field(default_factory=list)

    def of(self, kind: type[E]) -> list[tuple[Fact, E]]:
        """Return the facts about this life whose event has this class."""
        return [(one, one.event) for one in self.facts if isinstance(one.event, kind)]

    def last(self, kind: type[E]) -> tuple[Fact, E] | None:
        """Return the last fact whose event has this class."""
        return next(((one, one.event) for one in reversed(self.facts) if isinstance(one.event, kind)), None)

    def names(self) -> list[str]:
        """Return the names of the pod's containers, in the spec's order."""
        return list(
            dict.fromkeys([*(one.name for _, one in definitions(self.manifest)), *(one.container for one in self.runs)])
        )

    def definition(self, container: str) -> Container | None:
        """Return the container's definition in the latest spec."""
        return _definition(self.manifest, container)

    def spec_of(self, run: Run) -> Pod | None:
        """Return the spec that the run was started with; None if the log does not have it."""
        if run.start_missing:
            return None
        return next((spec for position, spec in reversed(self.specs) if position < run.started.position), None)

    def definition_of(self, run: Run) -> Container | None:
        """Return the definition that the run was started with; None if the log does not have it."""
        spec = self.spec_of(run)
        return _definition(spec, run.container) if spec is not None else None

    def is_init(self, container: str) -> bool:
        """Whether the container is an init container that is expected to end."""
        inits = self.manifest.spec.init_containers
        return any(one.name == container and one.restart_policy != "Always" for one in inits)

    def runs_of(self, container: str) -> list[Run]:
        return [one for one in self.runs if one.container == container]

    def restarts(self, container: str = "") -> list[Restart]:
        """Return the restarts of one container, or of all, oldest first.

        An init container that has succeeded and runs again in a new sandbox has not restarted.
        """
        names = [container] if container else self.names()
        found = [restart for name in names for restart in self._restarts_of(name)]
        return sorted(found, key=lambda one: one.position)

    def _restarts_of(self, container: str) -> Iterator[Restart]:
        runs, number = self.runs_of(container), 0
        for index, run in enumerate(runs):
            after = runs[index + 1] if index + 1 < len(runs) else None
            if run.exit is None and after is None and run.scheduled is None:
                continue
            if self.is_init(container) and run.exit is not None and run.exit.exit_code == 0:
                continue
            if after is not None or run.scheduled is not None:
                number += 1
                yield Restart(number=number, before=run, after=after)


class PodHistory(msgspec.Struct, kw_only=True):
    """What the log has about one pod. `lives`, oldest first; `node`: events about the whole node, in log order;
    `requests`: what the sources requested for the pod's name; `written_after`: when anything was written to the log.
    """

    name: str
    lives: list[Life] = msgspec.field(default_factory=list)
    node: list[Fact] = msgspec.field(default_factory=list)
    requests: list[Fact] = msgspec.field(default_factory=list)
    written_after: WrittenAfter = never_written

    def node_events(self, kind: type[E]) -> list[tuple[Fact, E]]:
        """Return the facts about the node whose event has this class."""
        return [(one, one.event) for one in self.node if isinstance(one.event, kind)]

    def begin_of(self, life: Life) -> Position:
        """Return the last entry of the earlier pod that had the same uid; START if there was none."""
        before = [one for one in self.lives[: self.number_of(life)] if one.uid == life.uid and one.facts]
        return before[-1].facts[-1].position if before else START

    def number_of(self, life: Life) -> int:
        """Return how many lives the name had before this one."""
        return next((number for number, one in enumerate(self.lives) if one is life), 0)

    def has_all_of(self, run: Run, upto: Position) -> bool:
        """Return whether the log has all entries from the start of a run up to this one, which is part of it.

        It does not if the run was adopted: a lost end of the log may have had a request to stop it.
        """
        began = not run.start_missing and not isinstance(run.started.event, PodAdopted)
        return began and self.gap(run.started.position, upto) is None

    def gap(self, after: Position, before: Position | None = None) -> Fact | None:
        """Return the first gap in the log between two entries; None if there is none."""
        return next(
            (
                fact
                for fact, _ in self.node_events(Missing)
                if after <= fact.position and (before is None or fact.position <= before)
            ),
            None,
        )


def definitions(manifest: Pod) -> Iterator[tuple[str, Container]]:
    """Yield all containers of a spec, each with the name of its list."""
    spec = manifest.spec
    for name, some in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    ):
        yield from ((name, one) for one in some)


def _definition(spec: Pod, container: str) -> Container | None:
    return next((one for _, one in definitions(spec) if one.name == container), None)


def _ended(run: Run) -> Position:
    return run.exit.fact.position if run.exit else run.started.position
