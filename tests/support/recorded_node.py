"""A node whose actors decide for real, and record what they decide from, on a simulated runtime.

Input: settings; pods, outcomes of probes, ends of containers, scans. Output: the log, as agents write it. There are no
threads and no time passes by itself, so two nodes that are told the same differ only by their settings.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from chronolet.kernel.folding import folded
from chronolet.kernel.kind import Due, Kind
from chronolet.kernel.recording.inputs import InputRecorder
from chronolet.kernel.step.input import Input
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.node.settings.plain import digest, plain_settings
from chronolet.node.settings.policies import deciding
from chronolet.node.settings.settings import Settings
from chronolet.pod import signals as pods
from chronolet.pod import wanted
from chronolet.prober import signals as probes
from chronolet_schemas import codec, kernel, manifests, pleg, podspec, registry
from chronolet_schemas.envelope import START, Command, Event, Message, Position, Record
from chronolet_schemas.prober import Outcome, ProbeName

NODE = "node-1"
NOON = 1_800_000_000_000
KINDS = ("pod", "prober", "container_gc", "image_gc")


class RecordedNode:
    """One node. `now` is in milliseconds."""

    stopped_code = 137
    """The exit code of containers that are stopped."""

    def __init__(self, server: MemoryServer | None = None, set_clock: Callable[[int], None] | None = None) -> None:
        self.now = NOON
        self.server = server or MemoryServer(lambda: self.now)
        self._set_clock = set_clock
        self.states: dict[str, dict[str, Any]] = {}
        self.kinds: dict[str, Kind[Any]] = {}
        self._recorders: dict[str, InputRecorder] = {}
        self._starts = 0

    def start(self, **settings: Any) -> None:
        """Start the agent, or start it again, with these settings."""
        self._starts += 1
        mine = Settings(node=NODE, root_dir=Path("/r"), admission=("prober",), **settings)
        self.kinds = {kind.name: kind for kind in deciding(mine, "x86_64") if kind.name in KINDS}
        process = f"p{self._starts}"
        plain = plain_settings(mine)
        started = kernel.ProcessStarted(
            process=process, kinds=list(KINDS), settings=plain, settings_digest=digest(plain), architecture="x86_64"
        )
        self._append(
            Record(registry.type_of(type(started)), f"node/{NODE}", "", f"process/{process}", "", codec.encode(started))
        )
        self._recorders = {name: InputRecorder(kind, process) for name, kind in self.kinds.items()}
        for name, kind in self.kinds.items():
            self.states.setdefault(name, dict.fromkeys(kind.at_start, kind.decider.initial))

    # -- what happens --------------------------------------------------------------------------------------------
    def apply(self, manifest: podspec.Pod, uid: str = "u1") -> None:
        """Request a pod, and run its effects."""
        applied = manifests.PodApplied(
            pod=manifest.key, uid=uid, source="apply", digest=podspec.digest(manifest), manifest=manifest
        )
        self._outside("manifests", applied)
        self.settle()

    def withdraw(self, pod: str, uid: str = "u1") -> None:
        """End a pod, and run its effects."""
        self._outside("manifests", manifests.PodWithdrawn(pod=pod, uid=uid, source="apply"))
        self.settle()

    def probe(self, outcome: Outcome, pod: str, probe: ProbeName = "Liveness", container: str = "app") -> bool:
        """Let a probe have an outcome now; return whether it runs."""
        key = f"{pod}/{container}/{probe}"
        state = self.states["prober"].get(key)
        effects = () if state is None else self.kinds["prober"].decider.outstanding(state)
        for effect in effects:
            signal = probes.ProbeOutcome(
                intent=effect.intent, outcome=outcome, at=self.now, milliseconds=5, output=outcome
            )
            self.tell("prober", key, signal)
            self.settle()
        return bool(effects)

    def dies(self, pod: str, code: int = 1, container: str = "app") -> None:
        """Let a container end by itself now."""
        one = self.states["pod"][pod].container(container)
        died = pleg.ContainerDied(
            pod=pod,
            uid=self.states["pod"][pod].uid,
            container=container,
            attempt=one.attempt,
            id=one.id,
            exit_code=code,
            reason="Error",
            started_at=one.started_at,
            finished_at=self.now,
        )
        self._outside("pleg", died)
        self.settle()

    def passes(self, milliseconds: int) -> None:
        """Let time pass; timers fire when they are due."""
        until = self.now + milliseconds
        while (due := self._next_timer()) is not None and due[0] <= until:
            at, name, key = due
            self._go_to(max(at, self.now))
            self.tell(name, key, Due(at=at))
            self.settle()
        self._go_to(until)

    def _go_to(self, now: int) -> None:
        self.now = now
        if self._set_clock is not None:
            self._set_clock(now)

    def _next_timer(self) -> tuple[int, str, str] | None:
        found = [
            (at, name, key)
            for name, states in self.states.items()
            for key, state in states.items()
            if (at := self.kinds[name].decider.due(state)) is not None
        ]
        return min(found, default=None)

    # -- decisions -----------------------------------------------------------------------------------------------
    def tell(self, kind: str, key: str, message: Message) -> None:
        """Decide a message, record the events, and deliver them."""
        for event, at in self._decided(self.kinds[kind], key, message, "", from_log=False):
            self._deliver(event, at)

    def _decided(
        self, kind: Kind[Any], key: str, message: Message, cause: str, *, from_log: bool
    ) -> list[tuple[Event, Position]]:
        decider, known = kind.decider, self.states[kind.name].get(key)
        if known is None and type(message) not in kind.creates:
            return []
        state = decider.initial if known is None else known
        events = list(decider.decide(state, message, self.now))
        if not events:
            return []
        cause = cause or f"{self.now}-0"
        entity = f"{kind.name}/{key}"
        records = [
            Record(
                registry.type_of(type(one)),
                entity,
                one.subject(),
                f"{kind.name}#{self._starts}",
                cause,
                codec.encode(one),
            )
            for one in events
        ]
        source = (
            "log"
            if from_log
            else "due"
            if isinstance(message, Due)
            else "mailbox"
            if isinstance(message, Command)
            else "signal"
        )
        item = Input(source, START, (key,), message, cause, "")  # type: ignore[arg-type]
        records[0] = self._recorders[kind.name].recorded(
            item, decider.due(state), lambda: decider.outstanding(state), self.now, records
        )
        found = [(event, self._append(record)) for event, record in zip(events, records, strict=True)]
        for event in events:
            known = folded(decider, known, event)
        if known is None:
            self.states[kind.name].pop(key, None)
        else:
            self.states[kind.name][key] = known
        return found

    def _outside(self, kind: str, event: Event) -> None:
        """Write an event of an actor that is not simulated, and deliver it."""
        record = Record(
            registry.type_of(type(event)),
            f"{kind}/node",
            event.subject(),
            f"{kind}#1",
            f"{self.now}-0",
            codec.encode(event),
        )
        self._deliver(event, self._append(record))

    def _deliver(self, event: Event, at: Position) -> None:
        for other in self.kinds.values():
            route = other.subscribes.get(type(event))
            for key in () if route is None else route(event):
                for following, position in self._decided(other, key, event, str(at), from_log=True):
                    self._deliver(following, position)

    def _append(self, record: Record) -> Position:
        with self.server.changed:
            found = self.server.append(record)
            self.server.changed.notify_all()
        return found

    # -- effects -------------------------------------------------------------------------------------------------
    def settle(self) -> None:
        """Run the pods' effects, all of which succeed at once."""
        while (work := self._work()) is not None:
            self.tell("pod", work[0], work[1])

    def _work(self) -> tuple[str, Message] | None:
        for key, state in self.states["pod"].items():
            for effect in self.kinds["pod"].decider.outstanding(state):
                return key, self._success(state, effect)
        return None

    def _success(self, state: Any, effect: Any) -> Message:  # noqa: PLR0911 - a table
        to: dict[str, Any] = {"subject": effect.subject, "intent": effect.intent}
        match effect:
            case wanted.KeepSpec():
                return pods.SpecKept(**to)
            case wanted.StartSandbox():
                return pods.SandboxUp(id=f"box-{effect.attempt}", ip="10.0.0.2", started_at=self.now, **to)
            case wanted.StopSandbox():
                return pods.SandboxDown(id=effect.id, finished_at=self.now, **to)
            case wanted.EnsureImage():
                return pods.ImagePresent(image_id="sha256:1", size_bytes=1, pulled=False, **to)
            case wanted.CreateContainer():
                return pods.ContainerMade(id=f"{state.uid}-{effect.container}-{effect.attempt}", **to)
            case wanted.StartContainer():
                name = f"{state.uid}-{effect.container}-{effect.attempt}"
                return pods.ContainerUp(id=name, started_at=self.now, **to)
            case wanted.StopContainer():
                started = state.container(effect.container).started_at
                end = {
                    "exit_code": self.stopped_code,
                    "reason": "Error",
                    "started_at": started,
                    "finished_at": self.now,
                }
                return pods.ContainerDead(id=effect.id, **end, **to)
            case wanted.ReadExit():
                return pods.ExitRead(**to)
            case wanted.Cleanup():
                return pods.CleanedUp(**to)
            case _:
                raise AssertionError(f"the simulated runtime has no {type(effect).__name__}")
