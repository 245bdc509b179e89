"""Derives the steps of a pod's last start from the log. Pure.

Input: the node's log, spans. Output: `Start`. Next: `start_culprit`, which finds what took longest; `start_trace`,
which assembles the trace.

A step begins with the event that requests it and ends with the event that reports its outcome. Steps may overlap: a
container is created while its sandbox starts. A start begins when the pod is accepted, when the restart of a container
is scheduled, and when a container is stopped for a restart:

    PodApplied (no earlier pod exists), PodAdopted        forget everything before
    SpecAccepted (another uid)                            forget everything before
    SandboxExited, ContainerStopRequested (to restart)    forget ended steps, if no step is open
    RestartScheduled                                      forget ended steps, except those that led to it
    TerminationRequested, PodFailed                       give up open steps
    SandboxBlocked, ContainerBlocked                      give up open steps
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from chronolet.history import step_events
from chronolet.ports.spans import Span
from chronolet_schemas import manifests, pod, prober, registry
from chronolet_schemas.envelope import Entry, Event
from chronolet_schemas.podspec import PodSpec
from chronolet_schemas.times import Stamp

GIVEN_UP = "given up: the pod is ending"
_OF_ALL_PODS = {registry.type_of(one) for one in (pod.ImageReady, manifests.PodApplied, manifests.PodWithdrawn)}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a start. Times are milliseconds since the epoch; `ended` is 0 while the step is open.

    `note`: how the step ended, or why it is still open. `failed`: it did not succeed. `waited`: the milliseconds for
    which a pull was queued.
    """

    name: str
    began: int
    ended: int = 0
    note: str = ""
    failed: bool = False
    waited: int = 0
    spans: tuple[Span, ...] = ()

    def milliseconds(self, now: int) -> int:
        """Return the duration of the step, up to `now` if it is still open."""
        return max((self.ended or now) - self.began, 0)


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's last start: its steps, oldest first. Times are milliseconds since the epoch; 0 means not yet.

    `since`: when a source requested the pod, the log adopted it, or a restart began. `lacking`: containers that have
    not started yet. `refusal`: why the start is refused; empty if it is not. `ending_at`: when the pod's termination
    was requested. `gone_at`: when nothing of the pod was left. `next_at`: when a pod of the same name began to wait for
    `gone_at`. `adopted`: the pod was already running when the log began. `probed`: its probes were requested. `delays`:
    the delays of its probes.
    """

    uid: str = ""
    since: int = 0
    steps: tuple[Step, ...] = ()
    lacking: tuple[str, ...] = ()
    refusal: str = ""
    ending_at: int = 0
    gone_at: int = 0
    next_at: int = 0
    adopted: bool = False
    probed: bool = False
    delays: tuple[prober.ProbeDelayed, ...] = ()

    @property
    def over(self) -> bool:
        """Whether no step is open and all containers have started, or the start was refused, or the pod is ending."""
        going_on = any(not one.ended for one in self.steps)
        return bool(self.refusal or self.ending_at) or not (going_on or self.lacking)


def concerns_start(entry: Entry, name: str) -> bool:
    """Return whether `last_start` needs this entry for the pod `name` (namespace/name)."""
    return entry.entity == f"pod/{name}" or entry.entity.startswith(f"prober/{name}/") or entry.type in _OF_ALL_PODS


def last_start(name: str, events: Iterable[tuple[Stamp, str, Event]], spans: Sequence[Span]) -> Start | None:
    """Return the last start of the pod `name` (namespace/name); None if there is none.

    `events`: each with its position, time and entity; they include other pods' events, whose pulls may delay this pod.
    """
    reading = _Reading(_by_cause(spans))
    own, probes = f"pod/{name}", f"prober/{name}/"
    for stamp, entity, event in events:
        if entity == own:
            reading.take(stamp, event)
        elif isinstance(event, prober.ProbeDelayed) and entity.startswith(probes):
            reading.delays.append(event)
        elif isinstance(event, manifests.PodApplied | manifests.PodWithdrawn) and event.pod == name:
            reading.want(stamp.milliseconds, event)
        if isinstance(event, pod.ImageReady) and event.pulled:
            reading.pulls.append((stamp.milliseconds, event))
    return reading.start() if reading.uid else None


def _by_cause(spans: Sequence[Span]) -> Mapping[str, tuple[Span, ...]]:
    found: dict[str, list[Span]] = {}
    for one in spans:
        found.setdefault(one.cause, []).append(one)
    return {cause: tuple(sorted(some, key=lambda one: one.at)) for cause, some in found.items()}


class _Reading:
    """What is known about the pod from the events read so far."""

    def __init__(self, spans: Mapping[str, tuple[Span, ...]]) -> None:
        self._spans = spans
        self.uid = ""
        self.delays: list[prober.ProbeDelayed] = []
        self.pulls: list[tuple[int, pod.ImageReady]] = []
        """The pulls of all pods, with the times at which they ended."""
        self._gone_at = 0
        self._begin("", 0)

    def start(self) -> Start:
        steps = sorted((*self._done, *self._open.values()), key=lambda one: one.began)
        return Start(
            uid=self.uid,
            since=self._since,
            steps=tuple(steps),
            lacking=tuple(one for one in self._containers if one not in self._started),
            refusal=self._refusal,
            ending_at=self._ending_at,
            gone_at=self._gone_at,
            next_at=self._next_at,
            adopted=self._adopted,
            probed=self._probed,
            delays=tuple(one for one in self.delays if one.uid == self.uid),
        )

    def want(self, at: int, event: manifests.PodApplied | manifests.PodWithdrawn) -> None:
        """Process a source's request for the pod, or its withdrawal, which matters only before the pod is accepted."""
        if isinstance(event, manifests.PodApplied):
            if not self.uid or self._gone_at:
                self._begin(event.uid, at, event.manifest.spec)
        elif event.uid == self.uid and not self._accepted:
            self._ending_at = self._gone_at = at

    def take(self, stamp: Stamp, event: Event) -> None:
        """Process one event of the pod."""
        at = stamp.milliseconds
        self._live(event, at)
        self._restart(event, at)
        self._outcome(event, at)
        self._begin_step(event, stamp)

    def _begin(self, uid: str, at: int, spec: PodSpec | None = None) -> None:
        self.uid, self._since, self._adopted, self._accepted = uid, at, spec is None, False
        self._define(spec)
        self._started: set[str] = set()
        self._done: list[Step] = []
        self._open: dict[str, Step] = {}
        self._stopped: set[str] = set()
        self._ends: dict[str, str] = {}
        self._refusal = ""
        self._ending_at = 0
        self._gone_at = 0
        self._next_at = 0
        self._probed = False
        self.delays.clear()

    def _define(self, spec: PodSpec | None) -> None:
        self._containers = tuple(one.name for one in spec.containers) if spec else ()
        inits = spec.init_containers if spec else ()
        self._inits = {one.name for one in inits if one.restart_policy != "Always"}

    def _forget(self, at: int) -> None:
        """Begin a new start: drop ended steps and probe delays."""
        self._since = at
        self._done = []
        self.delays.clear()

    def _live(self, event: Event, at: int) -> None:
        match event:
            case pod.SpecAccepted():
                self._accept(event, at)
            case pod.PodAdopted():
                self._begin(event.uid, at)
                self._accepted = True
            case pod.SandboxBlocked():
                self._refuse(event.message, at)
            case pod.ContainerBlocked():
                self._refuse(f"container {event.container}: {event.reason}: {event.message}", at)
            case pod.PodFailed():
                self._refuse(f"{event.reason}: {event.message}", at)
            case pod.TerminationRequested():
                self._ending_at = at
                self._give_up(GIVEN_UP, at)
            case pod.SuccessorAwaits():
                self._next_at = at if event.successor else 0
            case pod.PodEnded():
                self._gone_at = at
            case pod.ProbingRequested():
                self._probed = True
            case _:
                pass

    def _accept(self, event: pod.SpecAccepted, at: int) -> None:
        if event.uid != self.uid:
            self._begin(event.uid, at, event.manifest.spec)
        elif not self._adopted:
            self._define(event.manifest.spec)
            self._refusal = ""
        self._accepted = True

    def _refuse(self, why: str, at: int) -> None:
        self._refusal = why
        self._give_up(why, at)

    def _give_up(self, why: str, at: int) -> None:
        given_up = [msgspec.structs.replace(one, ended=at, note=why, failed=True) for one in self._open.values()]
        self._done += given_up
        self._open.clear()

    def _restart(self, event: Event, at: int) -> None:
        match event:
            case pod.SandboxExited() if not self._ending_at:
                self._stop(self._containers, at)
            case pod.ContainerStopRequested() if event.reason in step_events.RESTARTS and not self._ending_at:
                self._stop([event.container], at)
            case pod.RestartScheduled():
                if event.container not in self._stopped:
                    self._forget(at)
                self._stopped.discard(event.container)
                self._started.discard(event.container)
            case pod.ContainerStarted():
                self._started.add(event.container)
            case pod.ContainerExited():
                self._ends[event.container] = step_events.exit_words(event)
            case pod.ContainerStartFailed() | pod.ImageFailed():
                self._ends[event.container] = f"{event.reason}: {event.message}"
            case _:
                pass

    def _stop(self, containers: Iterable[str], at: int) -> None:
        """Record that these containers stop and will be started again."""
        if not self._open:
            self._forget(at)
        self._stopped.update(containers)
        self._started.difference_update(containers)

    def _outcome(self, event: Event, at: int) -> None:
        note = step_events.note(event)
        if note is not None and note.key in self._open:
            self._open[note.key] = msgspec.structs.replace(self._open[note.key], note=note.text)
        for ended in step_events.ended(event):
            self._end(ended, event, at)

    def _end(self, outcome: step_events.StepEnded, event: Event, at: int) -> None:
        step = self._open.pop(outcome.key, None)
        if step is None:
            return
        waited = event.waited_milliseconds if isinstance(event, pod.ImageReady) else 0
        text = outcome.text + (self._behind(event, at) if isinstance(event, pod.ImageReady) else "")
        ended = msgspec.structs.replace(step, ended=at, note=text or step.note, failed=outcome.failed, waited=waited)
        self._done.append(ended)

    def _behind(self, event: pod.ImageReady, at: int) -> str:
        """Return words that name the pull for which this one waited longest; empty if it did not wait. This one is not
        in `pulls` yet.
        """
        began = at - event.milliseconds
        queued = began - event.waited_milliseconds
        before = [
            (ended - max(queued, ended - one.milliseconds), one.image)
            for ended, one in self.pulls
            if ended > queued and ended - one.milliseconds < began
        ]
        return f" behind the pull of {max(before)[1]}" if event.waited_milliseconds and before else ""

    def _begin_step(self, event: Event, stamp: Stamp) -> None:
        begun = step_events.begun(event, self._inits)
        if begun is None or self._ending_at:
            return
        if isinstance(event, pod.HookRequested) and event.hook == "PreStop" and event.container not in self._stopped:
            return
        note = begun.note
        if isinstance(event, pod.RestartScheduled | pod.ImageBackOffBegan):
            note = self._ends.get(event.container, "")
        spans = self._spans.get(str(stamp.position), ())
        self._open[begun.key] = Step(name=begun.text, began=stamp.milliseconds, note=note, spans=spans)
