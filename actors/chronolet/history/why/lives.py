"""Assembles the facts about a pod: its lives, the runs of its containers, and what happened to the node. Pure.

Input: `Fact`s in log order. Output: `PodHistory`. Next: `endings` explains the end of a run, `present` the state of a
pod.

A life is the time of a pod under one uid. A run is one start of one container, identified by the container's id and the
start time: a container that Docker starts again has two runs with one id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from chronolet.history.why.facts import E, Fact
from chronolet_schemas import container_gc, manifests, pleg, pod, prober
from chronolet_schemas.podspec import Container, Pod

_SAME_START_MILLISECONDS = 1_000
"""Start times of one run that come from a notice and from an inspect may differ by this."""


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
    def at(self) -> int:
        """When the container was started again; while it was not, when its run ended."""
        return self.after.started.at if self.after else _ended(self.before)


class Life(msgspec.Struct, kw_only=True):
    """A pod under one uid. `facts`: everything about it, in log order.

    `adopted`: the pod is older than the log, or than the part of the log that is available.
    """

    uid: str
    manifest: Pod = Pod()
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
        return next((one for _, one in definitions(self.manifest) if one.name == container), None)

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
        return sorted(found, key=lambda one: one.at)

    def _restarts_of(self, container: str) -> Iterator[Restart]:
        runs, number = self.runs_of(container), 0
        for index, run in enumerate(runs):
            after = runs[index + 1] if index + 1 < len(runs) else None
            if run.exit is None and after is None:
                continue
            if self.is_init(container) and run.exit is not None and run.exit.exit_code == 0:
                continue
            if after is not None or run.scheduled is not None:
                number += 1
                yield Restart(number=number, before=run, after=after)


class PodHistory(msgspec.Struct, kw_only=True):
    """What the log has about one pod. `lives`, oldest first; `node`: events about the whole node, in log order;
    `requests`: what the sources requested for the pod's name.
    """

    name: str
    lives: list[Life] = msgspec.field(default_factory=list)
    node: list[Fact] = msgspec.field(default_factory=list)
    requests: list[Fact] = msgspec.field(default_factory=list)

    def node_events(self, kind: type[E]) -> list[tuple[Fact, E]]:
        """Return the facts about the node whose event has this class."""
        return [(one, one.event) for one in self.node if isinstance(one.event, kind)]


def definitions(manifest: Pod) -> Iterator[tuple[str, Container]]:
    """Yield all containers of a spec, each with the name of its list."""
    spec = manifest.spec
    for name, some in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    ):
        yield from ((name, one) for one in some)


def pod_history(name: str, facts: Iterable[Fact]) -> PodHistory:
    """Assemble the facts about the pod `name` (namespace/name)."""
    reading = _Reading(name)
    for fact in facts:
        reading.take(fact)
    return reading.history


class _Reading:
    """The history as read so far."""

    def __init__(self, name: str) -> None:
        self.history = PodHistory(name=name)
        self._deaths: dict[str, list[Fact]] = {}
        """What was recorded about containers whose run is not known yet."""

    def take(self, fact: Fact) -> None:
        event = fact.event
        named = getattr(event, "pod", "")
        if isinstance(event, manifests.PodApplied | manifests.PodWithdrawn | manifests.PodRefused):
            if named == self.history.name:
                self.history.requests.append(fact)
        elif fact.entity == f"pod/{self.history.name}" or fact.entity.startswith(f"prober/{self.history.name}/"):
            self._own(fact)
        elif isinstance(event, container_gc.RunStarted | manifests.FileAccepted):
            return
        elif named == self.history.name:
            self._about(fact)
        elif not named:
            self.history.node.append(fact)

    def _own(self, fact: Fact) -> None:
        event = fact.event
        if isinstance(event, pod.SpecAccepted | pod.PodAdopted):
            self._accept(fact, event)
        uid = getattr(event, "uid", "")
        life = self._life(uid)
        if life is None and uid:  # its beginning is missing
            life = Life(uid=uid, adopted=True)
            self.history.lives.append(life)
        if life is None:
            return
        life.facts.append(fact)
        match event:
            case pod.ContainerStarted():
                self._started(life, fact, event)
            case pod.ContainerExited():
                self._exited(life, fact, event)
            case pod.ContainerStartFailed() if event.id:
                self._start_failed(life, fact, event)
            case pod.RestartScheduled() | pod.StrayFound():
                _scheduled(life, fact, event)
            case _:
                self._to_run(life, fact)

    def _about(self, fact: Fact) -> None:
        """Process what another actor recorded about the pod."""
        life = self._life(getattr(fact.event, "uid", ""))
        if life is not None:
            life.facts.append(fact)
            self._to_run(life, fact)

    def _accept(self, fact: Fact, event: pod.SpecAccepted | pod.PodAdopted) -> None:
        life = next((one for one in self.history.lives if one.uid == event.uid), None)
        if life is None or isinstance(event, pod.PodAdopted):
            life = Life(uid=event.uid)
            self.history.lives.append(life)
        life.adopted = isinstance(event, pod.PodAdopted)
        life.manifest = event.manifest
        if isinstance(event, pod.PodAdopted):
            for found in sorted((*event.before, *event.containers), key=lambda one: one.attempt):
                _adopt(life, fact, found)

    def _life(self, uid: str) -> Life | None:
        lives = self.history.lives
        return next((one for one in reversed(lives) if one.uid == uid), lives[-1] if lives and not uid else None)

    def _started(self, life: Life, fact: Fact, event: pod.ContainerStarted) -> None:
        same = [one for one in life.runs if one.id == event.id]
        if same and abs(same[-1].started_at - event.started_at) <= _SAME_START_MILLISECONDS:
            return
        if same:
            same[-1].again = same[-1].again or fact
        life.runs.append(_run(fact, event, event.started_at, self._deaths.pop(event.id, [])))

    def _exited(self, life: Life, fact: Fact, event: pod.ContainerExited) -> None:
        run = next((one for one in life.runs if one.id == event.id and one.exit is None), None)
        if run is None:
            return  # the second end of a container that something started again
        run.facts.append(fact)
        run.exit = Exit(
            fact=fact,
            exit_code=event.exit_code,
            reason=event.reason,
            message=event.message,
            started_at=event.started_at,
            finished_at=event.finished_at,
        )

    def _start_failed(self, life: Life, fact: Fact, event: pod.ContainerStartFailed) -> None:
        run = _run(fact, event, event.failed_at, [fact])
        run.exit = Exit(
            fact=fact,
            exit_code=event.exit_code,
            reason=event.reason,
            message=event.message,
            started_at=event.failed_at,
            finished_at=event.failed_at,
            start_failed=True,
        )
        life.runs.append(run)

    def _to_run(self, life: Life, fact: Fact) -> None:
        """Add a fact to the run of the container that it is about."""
        about = getattr(fact.event, "id", "")
        if not about or isinstance(fact.event, pod.SandboxEvent):
            return
        run = self._run_of(life, fact, about)
        if run is not None:
            run.facts.append(fact)
        elif isinstance(fact.event, pleg.ContainerEvent | pleg.ProbeKillEvent | prober.ProbeEvent):
            self._deaths.setdefault(about, []).append(fact)

    def _run_of(self, life: Life, fact: Fact, about: str) -> Run | None:
        runs = [one for one in life.runs if one.id == about]
        if isinstance(fact.event, pleg.ContainerStarted) and runs:
            # Its own start, recorded twice, or a start by something else, which the pod records, too.
            known = abs(runs[-1].started_at - fact.event.started_at) <= _SAME_START_MILLISECONDS
            return runs[-1] if known else None
        return runs[-1] if runs else None


def _scheduled(life: Life, fact: Fact, event: pod.RestartScheduled | pod.StrayFound) -> None:
    """Note the decision to restart a container, or that something else has started a dead one again."""
    if isinstance(event, pod.StrayFound):
        for run in life.runs:
            if run.id == event.id:
                run.again = run.again or fact
    elif (runs := life.runs_of(event.container)) and runs[-1].exit is not None:
        runs[-1].scheduled = fact


def _run(fact: Fact, event: pod.ContainerEvent, started_at: int, facts: Sequence[Fact]) -> Run:
    about: Any = event
    return Run(
        container=event.container,
        attempt=event.attempt,
        id=about.id,
        started=fact,
        started_at=started_at,
        facts=[*facts] if fact in facts else [*facts, fact],
    )


def _adopt(life: Life, fact: Fact, found: pod.FoundContainer) -> None:
    run = Run(
        container=found.container,
        attempt=found.attempt,
        id=found.id,
        started=fact,
        started_at=found.started_at,
        facts=[fact],
    )
    if found.state == "exited":
        run.exit = Exit(
            fact=fact,
            exit_code=found.exit_code,
            reason=found.reason,
            message=found.message,
            started_at=found.started_at,
            finished_at=found.finished_at,
        )
    if found.state != "created":
        life.runs.append(run)


def _ended(run: Run) -> int:
    return run.exit.fact.at if run.exit else run.started.at
