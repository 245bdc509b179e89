"""Histories of one pod, default/web, as given / when / then tables for the answers about it.

    Story().runs(0).dies(137, sent=(9,)).restarts(1).answer().sentence

Input: what happens, in order; each step takes a second of the log's time. Output: the facts, and the answer.
"""

from __future__ import annotations

from typing import Any, Self

from chronolet.history.why.answer import Answer, Question, answer
from chronolet.history.why.causes import Cause
from chronolet.history.why.facts import Fact, Missing, written_after
from chronolet.history.why.lives import pod_history
from chronolet.history.why.records import PodHistory
from chronolet_schemas import container_gc, manifests, pleg, pod, podspec, prober
from chronolet_schemas.envelope import Event, Position
from chronolet_schemas.times import Stamp
from tests.cli.support.written_node import manifest

NOON = 1_800_000_000_000
SECOND = 1_000
NAME, UID = "default/web", "u1"
APP: dict[str, Any] = {"pod": NAME, "uid": UID, "container": "app"}
FILE = "file:/pods/web.yaml"


class Story:
    """The facts so far. `now` is the log's time, in milliseconds."""

    def __init__(self, **spec: Any) -> None:
        self.now = NOON
        self.facts: list[Fact] = []
        self.actor = "pleg#1"
        """The writer of the following facts."""
        self.manifest = manifest(**spec)
        self.accepted(self.manifest)

    def accepted(self, spec: podspec.Pod, uid: str = UID) -> Self:
        """A source requests the pod with this spec, and the pod accepts it."""
        applied = manifests.PodApplied(pod=NAME, uid=uid, source=FILE, digest="d", manifest=spec)
        self.add("manifests/node", applied)
        return self.add(
            f"pod/{NAME}",
            pod.SpecAccepted(
                pod=NAME,
                uid=uid,
                source=FILE,
                digest="d",
                manifest=spec,
                accepted_at=self.now,
                sandbox_hash="s",
                container_hashes={},
            ),
        )

    def add(self, entity: str, *events: Event, after: int = SECOND) -> Self:
        """Each of these events follows `after` milliseconds after the one before."""
        for event in events:
            self.now += after
            # As in Redis, a clock that is set back does not set back the positions.
            latest = max(self.now, self.facts[-1].position.milliseconds if self.facts else 0)
            stamp = Stamp(Position(latest, len(self.facts) + 1), self.now)
            self.facts.append(Fact(stamp, entity, event, self.actor))
        return self

    def has(self, *events: Event, after: int = SECOND) -> Self:
        """The pod's own events."""
        return self.add(f"pod/{NAME}", *events, after=after)

    def pleg(self, *events: Event, after: int = SECOND) -> Self:
        return self.add("pleg/node", *events, after=after)

    # -- a container's run -----------------------------------------------------------------------------------------
    def runs(self, attempt: int = 0, container: str = "app") -> Self:
        """The container starts; its id is the container's name and the attempt."""
        named: dict[str, Any] = {**APP, "container": container, "attempt": attempt, "id": f"{container}{attempt}"}
        at = self.now
        return self.pleg(pleg.ContainerStarted(started_at=at, **named)).has(
            pod.ContainerStarted(started_at=at, **named)
        )

    def dies(
        self,
        exit_code: int,
        *,
        attempt: int = 0,
        sent: tuple[int, ...] | None = (),
        reason: str = "Error",
        container: str = "app",
        ago: int = 10,
        sent_ago: int | None = None,
        recorded: bool = True,
    ) -> Self:
        """The container ends, `ago` milliseconds before Docker's notice of that.

        `sent_ago`: when the last signal was sent, in milliseconds before the end. `recorded`: the pod records the end.
        """
        named: dict[str, Any] = {**APP, "container": container, "attempt": attempt, "id": f"{container}{attempt}"}
        times: dict[str, Any] = {"started_at": NOON, "finished_at": self.now + SECOND - ago}
        end: dict[str, Any] = {"exit_code": exit_code, "reason": reason, **times, **named}
        sent_at = 0 if sent_ago is None else times["finished_at"] - sent_ago
        self.pleg(pleg.ContainerDied(sent=sent, sent_at=sent_at, **end))
        return self.has(pod.ContainerExited(**end)) if recorded else self

    def restarts(self, attempt: int, *, back_off: int = 0, container: str = "app") -> Self:
        """The restart is decided, and the container starts again."""
        return self.waits(attempt - 1, back_off, container).runs(attempt, container)

    def waits(self, attempt: int, back_off: int = 10, container: str = "app") -> Self:
        """The restart is decided; the container waits for its back-off."""
        named: dict[str, Any] = {**APP, "container": container, "attempt": attempt}
        at = self.now + back_off * SECOND
        return self.has(
            pod.RestartScheduled(at=at, back_off_seconds=back_off, next_back_off_seconds=2 * back_off, **named)
        )

    def stop(self, reason: pod.StopReason, *, grace: int = 2, attempt: int = 0) -> Self:
        """Chronolet requests the stop of the container."""
        return self.has(
            pod.ContainerStopRequested(
                **APP,
                attempt=attempt,
                id=f"app{attempt}",
                grace_period_seconds=grace,
                deadline=self.now + grace * SECOND,
                reason=reason,
            )
        )

    def probe_fails(self, probe: prober.ProbeName, times: int, threshold: int = 3, attempt: int = 0) -> Self:
        """The probe fails; at its threshold, its result changes."""
        about: dict[str, Any] = {**APP, "probe": probe, "id": f"app{attempt}"}
        entity = f"prober/{NAME}/app/{probe}"
        for count in range(1, times + 1):
            counted: dict[str, Any] = {"consecutive": count, "threshold": threshold, "code": 7, "output": "stuck\n"}
            self.add(entity, prober.ProbeFailed(at=self.now, milliseconds=5, **counted, **about))
            if count == threshold:
                changed = prober.ResultChanged(attempt=attempt, started_at=NOON, result="failure", **counted, **about)
                self.add(entity, changed)
        return self

    def oom(self, attempt: int = 0) -> Self:
        """The kernel kills a process of the container for lack of memory."""
        return self.pleg(pleg.OutOfMemory(**APP, attempt=attempt, id=f"app{attempt}"))

    def collected(self, attempt: int = 0, rule: container_gc.Rule = "per_container_limit") -> Self:
        """Container collection removes the dead container."""
        removed = container_gc.Removed(
            run=1, what="container", id=f"app{attempt}", name=f"app_{attempt}", pod=NAME, uid=UID, rule=rule
        )
        return self.add("container_gc/node", removed)

    def unread(self) -> Self:
        """An entry that cannot be read."""
        return self.add("", Missing())

    # -- Docker and the agent --------------------------------------------------------------------------------------
    def engine_lost(self) -> Self:
        return self.pleg(pleg.StreamLost(error="no socket"))

    def engine_back(self, *, first: bool = False, boot: str = "boot1", after: int = SECOND) -> Self:
        return self.pleg(pleg.StreamFollowed(server="docker 27", first=first, boot_id=boot), after=after)

    # -- answers ---------------------------------------------------------------------------------------------------
    @property
    def history(self) -> PodHistory:
        stamps = [one.stamp for one in self.facts]
        return pod_history(NAME, self.facts, lambda after, upto: written_after(stamps, after, upto))

    def answer(self, container: str = "", nth: int | None = None, *, restart: bool = False) -> Answer:
        return answer(self.history, Question(container, nth, restart))

    def causes(self, **question: Any) -> list[type[Cause]]:
        """Return the classes of the causes in the answer."""
        return [type(one) for one in self.answer(**question).chain]

    def sentence(self, **question: Any) -> str:
        return self.answer(**question).sentence
