"""The changed node: how a what-if question changes inputs, states and settings of the actors. Pure.

Input: `Wanted`, the settings that processes had. Output: a `history.whatif.change.Change`. Next:
`history.whatif.two_runs`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from chronolet.container_gc import policy as container_policy
from chronolet.container_gc import signals as container_signals
from chronolet.container_gc import wanted as container_wanted
from chronolet.history.recorded_decisions import Recorded
from chronolet.history.whatif.change import Both, EntityName, Estimating
from chronolet.image_gc import policy as image_policy
from chronolet.image_gc import signals as image_signals
from chronolet.image_gc import wanted as image_wanted
from chronolet.kernel.kind import Decider, Effect, Kind
from chronolet.node.settings.plain import read_settings
from chronolet.node.settings.policies import back_off_limits, deciding
from chronolet.node.settings.settings import Settings
from chronolet.node.whatif.collectors import ContainersEstimate, ImagesEstimate
from chronolet.node.whatif.edits import ATTRIBUTES, Edits, neutral
from chronolet.node.whatif.pods import PodEstimate, Runs
from chronolet.node.whatif.repeats import repeats
from chronolet.node.whatif.wanted import AGES, BACK_OFF, ChangeError, Wanted
from chronolet.pod.planning.backoff import Limits
from chronolet.prober import wanted as prober_wanted
from chronolet_schemas import container_gc, kernel, manifests, pod
from chronolet_schemas.envelope import Message

_KEPT_OUT = ("intent", "origin", "spec_hash", "deadline", "subject")
"""Fields of effects that nobody outside notices, or that follow from when they were requested."""


class NodeChange:
    """What a what-if question changes. See `history.whatif.change.Change`."""

    def __init__(self, wanted: Wanted, settings: Settings, machine: str) -> None:
        """`settings`, `machine`: of processes that the log does not describe."""
        self._wanted = wanted
        self._edits = Edits(wanted)
        self._changed = {BACK_OFF: wanted.settings[BACK_OFF]} if BACK_OFF in wanted.settings else {}
        self._limits: list[tuple[Kind[Any], Limits]] = []
        """The limits of the back-off with which each kind of pods decides."""
        self._usual = self._deciding(settings, machine)
        self._runs: dict[tuple[str, str], Runs] = {}
        """By part and uid."""
        self._images: image_signals.Looked | None = None
        self._containers: container_signals.Looked | None = None
        """The last recorded scans, that of images with the disk usage."""
        self.unknown: list[str] = []
        """What the record does not tell, each as a sentence without a full stop."""
        self.parts: set[str] = set()
        """The parts of the node about which something was decided."""

    def _with_change(self, settings: Settings) -> Settings:
        return replace(settings, **self._changed)

    def _deciding(self, settings: Settings, machine: str) -> Sequence[Kind[Any]]:
        """Return the kinds as a process with these settings decides with the change."""
        changed = self._with_change(settings)
        kinds = deciding(changed, machine)
        self._limits += [(kind, back_off_limits(changed)) for kind in kinds if kind.name == "pod"]
        return kinds

    def check(self) -> None:
        """Raise ChangeError if the record has nothing to which the change applies."""
        self._edits.expect_all_found()
        kinds = {"container_gc": self._wanted.container_policy, "image_gc": self._wanted.image_policy}
        for kind, policy in kinds.items():
            if policy and kind not in self.parts:
                raise ChangeError(
                    f"the log has no decision of the actor {kind} between the two moments, expected one that the "
                    "setting concerns"
                )
        if self._changed and not self.parts - kinds.keys():
            raise ChangeError("the log has no pod between the two moments, expected one that the setting concerns")

    # -- see `Change` --------------------------------------------------------------------------------------------
    def kinds(self) -> Sequence[Kind[Any]]:
        return self._usual

    def kinds_of(self, process: kernel.ProcessStarted) -> Sequence[Kind[Any]]:
        return self._deciding(read_settings(process.settings), process.architecture)

    def part(self, entity: EntityName) -> str | None:
        kind, key = entity
        match kind:
            case "image_gc":
                return kind if self._wanted.image_policy else None
            case "container_gc":
                return kind if self._wanted.container_policy else None
            case "pod" | "prober":
                name = "/".join(key.split("/")[:2])
                return name if self._changed or name in self._wanted.pods else None
            case _:
                return None

    def note(self, one: Recorded) -> None:
        part = self.part((one.kind.name, one.key))
        state = one.after or one.known
        if part is not None and state is not None and one.kind.name in ("pod", "prober"):
            self._runs.setdefault((part, state.uid), Runs()).note(one)
        message = None if one.made is None else one.made.message
        if isinstance(message, image_signals.Looked) and message.disk is not None:
            self._images = message
        elif isinstance(message, container_signals.Looked):
            self._containers = message

    def state(self, entity: EntityName, state: Any) -> Any:
        match entity[0]:
            case "pod" if state.uid:
                self.parts.add(state.pod)
                successor = state.successor
                if successor is not None:
                    successor = replace(successor, manifest=self._edits.manifest(successor.manifest))
                return replace(state, manifest=self._edits.manifest(state.manifest), successor=successor)
            case "prober":
                return self._probe(state)
            case _:
                return state

    def _probe(self, state: Any) -> Any:
        values = {
            field: value
            for (key, container, probe, field), value in self._wanted.thresholds.items()
            if (key, container, probe) == (state.pod, state.container, state.probe)
        }
        given = self._wanted.manifests.get(state.pod)
        if given is not None:
            containers = (*given.spec.init_containers, *given.spec.containers)
            found = next((one for one in containers if one.name == state.container), None)
            probe = None if found is None else getattr(found, ATTRIBUTES[state.probe])
            if probe is None:  # it is no longer requested
                return None
            values = {"failureThreshold": probe.failure_threshold, "successThreshold": probe.success_threshold}
        named = {"failureThreshold": "failure_threshold", "successThreshold": "success_threshold"}
        definition = replace(state.definition, **{named[field]: value for field, value in values.items()})
        return replace(state, definition=definition)

    def message(self, entity: EntityName, message: Message) -> Message:
        self.parts.add(self.part(entity) or "")
        match message:
            case manifests.PodApplied() | pod.AdoptPod():
                return replace(message, manifest=self._edits.manifest(message.manifest))
            case image_signals.Looked():
                return self._images_looked(message)
            case container_signals.Looked():
                return replace(message, policy=self._container_policy(message.policy))
            case _:
                return message

    def view(self, effect: Effect) -> Hashable:
        match effect:
            case image_wanted.RemoveImage():
                return "RemoveImage", effect.id
            case container_wanted.Remove():
                return "Remove", effect.victim.what, effect.victim.id or effect.victim.name
            case prober_wanted.RunProbe():
                return "RunProbe", effect.probe, effect.id
            case image_wanted.Look() | container_wanted.Look():
                return type(effect).__name__
            case _:
                return type(effect).__name__, effect.subject, _content(effect)

    def noticed(self, entity: EntityName, decider: Decider[Any], state: Any) -> frozenset[Hashable]:
        match entity[0]:
            case "prober":
                # Whether a threshold ended the probing is not noticed: the container is stopped then.
                gate_open = state.started != (state.probe == "Startup")
                return frozenset(((state.probe, state.id),)) if state.running and gate_open else frozenset()
            case "image_gc" | "container_gc":
                removals = (image_wanted.RemoveImage, container_wanted.Remove)
                return frozenset(self.view(one) for one in decider.outstanding(state) if isinstance(one, removals))
            case _:
                return frozenset(map(self.view, decider.outstanding(state)))

    def may_be_late(self, one: Recorded) -> bool:
        # An object grows old between two recorded scans. The log has each scan that was requested.
        message = None if one.made is None else one.made.message
        looked = isinstance(message, image_signals.Looked | container_signals.Looked)
        return looked and not getattr(message, "intent", "") and not AGES.isdisjoint(self._wanted.settings)

    def repeats(
        self, entity: EntityName, states: Both, until: int, *, ended: bool
    ) -> Iterator[tuple[int, Message | None]]:
        if entity[0] == "prober" and states.recorded is not None and states.changed is not None:
            yield from repeats(states.recorded, states.changed, until, ended=ended)
        elif entity[0] == "image_gc" and _lacks_scans(states.recorded, states.changed):
            yield until, None

    def begins_anew(self, one: Recorded) -> bool:
        if one.kind.name != "pod" or one.after is None or not one.after.uid:
            return False
        return one.known is None or one.known.uid != one.after.uid

    def estimating(
        self, part: str, states: Mapping[EntityName, Both], at: int, kinds: Mapping[str, Kind[Any]]
    ) -> Estimating:
        if part == "image_gc":
            return ImagesEstimate(self._both(states, part), at, self._images, self._images_looked)
        if part == "container_gc":
            return ContainersEstimate(self._both(states, part), at, self._containers, self._container_policy)
        state = states.get(("pod", part), Both(None, None)).changed
        runs = self._runs.get((part, "" if state is None else state.uid), Runs())
        limits = next(limits for kind, limits in self._limits if kind is kinds["pod"])
        return PodEstimate(part, states, at, runs, limits, every=bool(self._changed))

    @staticmethod
    def _both(states: Mapping[EntityName, Both], kind: str) -> Both:
        return next(both for (name, _), both in states.items() if name == kind)

    # -- policies ------------------------------------------------------------------------------------------------
    def _images_looked(self, message: image_signals.Looked) -> image_signals.Looked:
        policy = replace(message.policy, **self._wanted.image_policy)
        _expect_no_problem(image_policy.problem(policy))
        if not image_policy.collects(message.policy) and image_policy.collects(policy) and not self.unknown:
            self.unknown.append(
                "what periodic collections of images would have done while image-gc-high-threshold was 100: the log "
                "has no readings of the disk from that time"
            )
        if not message.intent and message.disk is not None and not image_policy.collects(policy):
            return replace(message, policy=policy, disk=None)  # there are no periodic runs
        return replace(message, policy=policy)

    def _container_policy(self, policy: container_gc.Policy) -> container_gc.Policy:
        changed = replace(policy, **self._wanted.container_policy)
        _expect_no_problem(container_policy.problem(changed))
        return changed


def _lacks_scans(recorded: Any, changed: Any) -> bool:
    """Whether the record lacks scans of images that lead to runs with the change: one run fails after the other, which
    only they would tell, or only the change has periodic runs.
    """
    if recorded is None or changed is None or recorded.policy is None or changed.policy is None:
        return False
    only_changed = image_policy.collects(changed.policy) and not image_policy.collects(recorded.policy)
    return changed.failures > recorded.failures or only_changed


def _expect_no_problem(problem: str) -> None:
    if problem:
        raise ChangeError(f"{problem}, with the other settings as recorded; change both")


def _content(effect: Effect) -> bytes:
    """Return what the outside world notices of an effect."""
    fields = {name: getattr(effect, name) for name in effect.__struct_fields__ if name not in _KEPT_OUT}
    if "manifest" in fields:
        fields["manifest"] = neutral(fields["manifest"])
    return msgspec.msgpack.encode(fields)
