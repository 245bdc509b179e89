"""Assembles the facts about a pod into its lives and the runs of its containers. Pure.

Input: `Fact`s in log order. Output: `records.PodHistory`. Next: `endings` explains the end of a run, `present` the
state of a pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chronolet.history.why.facts import Fact, WrittenAfter, never_written
from chronolet.history.why.records import Exit, Life, PodHistory, Run
from chronolet_schemas import container_gc, manifests, pleg, pod, prober

_SAME_START_MILLISECONDS = 1_000
"""Start times of one run that come from a notice and from an inspect may differ by this."""


_BEFORE_A_RUN = (
    pleg.ContainerEvent,
    pleg.ProbeKillEvent,
    prober.ProbeEvent,
    pod.ContainerStopRequested,
    pod.ContainerStopReleased,
    pod.HookRequested,
    pod.HookEnded,
)
"""Events that may precede the entry by which a run is known: its start, or its end if the log lacks the start."""


def pod_history(name: str, facts: Iterable[Fact], written_after: WrittenAfter = never_written) -> PodHistory:
    """Assemble the facts about the pod `name` (namespace/name)."""
    reading = _Reading(name)
    reading.history.written_after = written_after
    for fact in facts:
        reading.take(fact)
    return reading.history


class _Reading:
    """The history as read so far."""

    def __init__(self, name: str) -> None:
        self.history = PodHistory(name=name)
        self._deaths: dict[str, list[Fact]] = {}
        """What was recorded about containers whose run is not known yet."""
        self._by_id: dict[tuple[str, str], Run] = {}
        """The latest run of each container, by the pod's uid and the container's id."""
        self._by_name: dict[tuple[str, str], Run] = {}
        """The latest run of each container, by the pod's uid and the container's name."""

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
                self._decided(life, fact, event)
            case _:
                self._to_run(life, fact)

    def _about(self, fact: Fact) -> None:
        """Process what another actor recorded about the pod."""
        life = self._life(getattr(fact.event, "uid", ""))
        if life is not None:
            life.facts.append(fact)
            self._to_run(life, fact)

    def _accept(self, fact: Fact, event: pod.SpecAccepted | pod.PodAdopted) -> None:
        adopted = isinstance(event, pod.PodAdopted)
        life = self._life(event.uid)
        # A static pod that is requested again gets the uid that it had before.
        if life is None or adopted or life.of(pod.PodEnded):
            life = Life(uid=event.uid, adopted=adopted)
            self.history.lives.append(life)
        life.manifest = event.manifest
        life.specs.append((fact.position, event.manifest))
        if isinstance(event, pod.PodAdopted):
            for found in sorted((*event.before, *event.containers), key=lambda one: one.attempt):
                if found.state != "created":
                    self._add(life, _adopted(fact, found))

    def _life(self, uid: str) -> Life | None:
        lives = self.history.lives
        return next((one for one in reversed(lives) if one.uid == uid), lives[-1] if lives and not uid else None)

    def _started(self, life: Life, fact: Fact, event: pod.ContainerStarted) -> None:
        same = self._by_id.get((life.uid, event.id))
        if same is not None and abs(same.started_at - event.started_at) <= _SAME_START_MILLISECONDS:
            return
        if same is not None:
            same.again = same.again or fact
        self._add(life, _run(fact, event, event.started_at, self._deaths.pop(event.id, [])))

    def _exited(self, life: Life, fact: Fact, event: pod.ContainerExited) -> None:
        run = self._by_id.get((life.uid, event.id))
        if run is None:  # the entry about its start is missing
            run = _run(fact, event, event.started_at, self._deaths.pop(event.id, []))
            run.start_missing = True
            self._add(life, run)
        if run.exit is not None:
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
        self._add(life, run)

    def _add(self, life: Life, run: Run) -> None:
        before = self._by_name.get((life.uid, run.container))
        if before is not None:
            before.exit = before.exit or _noticed(before)
        life.runs.append(run)
        self._by_id[life.uid, run.id] = self._by_name[life.uid, run.container] = run

    def _decided(self, life: Life, fact: Fact, event: pod.RestartScheduled | pod.StrayFound) -> None:
        """Note the decision to restart a container, or that something else has started a dead one again."""
        if isinstance(event, pod.StrayFound):
            run = self._by_id.get((life.uid, event.id))
            if run is not None:
                run.again = run.again or fact
            return
        run = self._by_name.get((life.uid, event.container))
        if run is not None and run.attempt == event.attempt:
            run.exit = run.exit or _noticed(run)
            run.scheduled = fact

    def _to_run(self, life: Life, fact: Fact) -> None:
        """Add a fact to the run of the container that it is about."""
        about = getattr(fact.event, "id", "")
        if not about or isinstance(fact.event, pod.SandboxEvent):
            return
        run = self._run_of(life, fact, about)
        if run is not None:
            run.facts.append(fact)
        elif isinstance(fact.event, _BEFORE_A_RUN):
            self._deaths.setdefault(about, []).append(fact)

    def _run_of(self, life: Life, fact: Fact, about: str) -> Run | None:
        """Return the last run of a container; None if there is none, or if the fact is about its next run."""
        run = self._by_id.get((life.uid, about))
        if run is not None and isinstance(fact.event, pleg.ContainerStarted) and run.of(pleg.ContainerDied):
            run.again = run.again or fact
            return None
        return run


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


def _noticed(run: Run) -> Exit | None:
    """Return the end of a run as pleg recorded it, if the pod's own entry about it is missing."""
    for fact, event in run.of(pleg.ContainerDied)[:1]:
        return Exit(
            fact=fact,
            exit_code=event.exit_code,
            reason=event.reason,
            started_at=event.started_at,
            finished_at=event.finished_at,
        )
    return None


def _adopted(fact: Fact, found: pod.FoundContainer) -> Run:
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
    return run
