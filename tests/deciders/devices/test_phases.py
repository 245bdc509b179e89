"""The tables of phases in the docstrings match the decider: it makes each transition in them, and no others."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from itertools import chain
from types import ModuleType
from typing import Any, NamedTuple, get_args

import pytest

from chronolet.devices import signals, wanted
from chronolet.devices.claims import lifecycle as claims
from chronolet.devices.claims import pre_start
from chronolet.devices.context import Policy
from chronolet.devices.plugins import lifecycle as plugins
from chronolet.devices.plugins.lists import SILENCE_MILLISECONDS
from chronolet.devices.plugins.stops import STOP_GRACE_MILLISECONDS
from chronolet.devices.state import Claim, ClaimPhase, Resource, ResourcePhase, State
from chronolet.kernel.decider import Due
from chronolet_schemas import devices, pod
from chronolet_schemas.envelope import Event
from tests.deciders.devices.world import IDS, OPERATIONS, POLICIES, RESOURCES, World

ROW = re.compile(
    r"^ {4}(?P<phase>\S.*?) {2,}(?P<message>\S.*?) {2,}(?P<event>\w+)( -> (?P<next>\w+( \w+)*))?( +\(.*\))?$",
    re.MULTILINE,
)
ALL_OPERATIONS = (
    *OPERATIONS,
    *("register", "register", "list", "list", "answer", "answer", "start", "start", "start"),
    *("repeat", "repeat", "change", "free", "free", "leave", "repeat_entries"),
)
"""The operations to choose from: those in `OPERATIONS`, with registrations, lists, answers and starts made more
frequent and further operations added, so that claims reach every phase.
"""
OTHER = "any change, or its retry_at"
"""The message of a transition that does not follow from a message about the claim itself."""
TIMES = {
    "PluginSilent": f"{SILENCE_MILLISECONDS // 1000} s",
    "ResourceRemoved": f"{STOP_GRACE_MILLISECONDS // 60_000} minutes",
}


class Transition(NamedTuple):
    phase: str
    message: str
    event: str
    next: str


def table(module: ModuleType, *phases: str) -> set[Transition]:
    """Return the table in the module's docstring; `any` means each of `phases`."""
    transitions = set()
    for row in ROW.finditer(module.__doc__ or ""):
        for phase in phases if row["phase"] == "any" else (row["phase"],):
            transitions.add(Transition(phase, row["message"], row["event"], row["next"] or phase))
    assert transitions
    return transitions


class Observer(World):
    """A world that records the transitions of claims, of start notifications, and of resources."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.transitions = defaultdict[ModuleType, set[Transition]](set)
        self.direct = ""

    def send(self, message: Any) -> None:
        """Send a message and note the claim that it is about: at most one event about that claim follows directly from
        it.
        """
        match message:
            case pod.DevicesRequested():
                self.direct = f"{message.uid}/{message.container}"
            case signals.PreferenceAnswered() | signals.AllocateAnswered() | signals.AllocateRefused():
                self.direct = message.subject.removeprefix("claim/")
            case _:
                self.direct = ""
        super().send(message)

    def folded(self, message: Any, event: Event, before: State) -> None:
        name = type(message).__name__
        name = f"pod.{name}" if isinstance(message, pod.PodEvent) else name
        match event:
            case devices.PreStartAsked() | devices.PreStartDone() | devices.PreStartFailed():
                phases = [_start_phase(state, event) for state in (before, self.state)]
                self._record(pre_start, phases[0], name, event, phases[1])
            case devices.ClaimEvent():
                key = f"{event.uid}/{event.container}"
                self._claim_changed(key, name if key == self.direct else OTHER, event, before)
                self.direct = "" if key == self.direct else self.direct
            case devices.DevicesFreed():
                for container in event.devices:
                    self._claim_changed(f"{event.uid}/{container}", name, event, before)
            case devices.ResourceEvent():
                self._resource_changed(event.resource, name, event, before)
            case devices.RegistryOpened():
                for resource, known in before.resources.items():
                    self._registry_opened(resource, known, name, event, before)

    def _claim_changed(self, key: str, message: str, event: Event, before: State) -> None:
        phases = [state.claims[key].phase if key in state.claims else "no claim" for state in (before, self.state)]
        self._record(claims, phases[0], message, event, phases[1])

    def _registry_opened(self, resource: str, known: Resource, message: str, event: Event, before: State) -> None:
        if known.by == "registration":
            self._resource_changed(resource, message, event, before)
        else:
            assert self.state.resources[resource].phase == known.phase

    def _resource_changed(self, resource: str, message: str, event: Event, before: State) -> None:
        message = TIMES[type(event).__name__] if message == Due.__name__ else message
        phases = [
            state.resources[resource].phase if resource in state.resources else "no resource"
            for state in (before, self.state)
        ]
        self._record(plugins, phases[0], message, event, phases[1])

    def _record(self, module: ModuleType, phase: str, message: str, event: Event, after: str) -> None:
        self.transitions[module].add(Transition(phase, message, type(event).__name__, after))

    def plug(self, resource: str, *, preferred: bool = False) -> None:
        """Make a plugin that requires PreStartContainer register and list healthy devices."""
        options = devices.PluginOptions(pre_start_required=True, preferred_allocation=preferred)
        self.send(
            signals.PluginRegistering(
                resource=resource, versions=("v1beta1",), endpoint="p.sock", folder="/plugins", options=options
            )
        )
        listed = tuple(devices.DeviceInfo(id=one, health=devices.HEALTHY) for one in IDS)
        generation = self.state.resources[resource].generation
        self.send(signals.DevicesListing(resource=resource, generation=generation, devices=listed))

    def request(self, claim: Claim, resources: dict[str, int]) -> None:
        """Make the container of a claim request devices."""
        self.send(
            pod.DevicesRequested(
                pod=claim.pod,
                uid=claim.uid,
                container=claim.container,
                role=claim.role,
                resources=resources,
                requested_at=self.now,
            )
        )

    # -- more operations -----------------------------------------------------------------------------------------
    def _repeat(self, resource: str, uid: str, number: int) -> None:
        """Make a container with a claim request the same devices again."""
        if claim := self._any_claim(number):
            self.request(claim, claim.wants)

    def _change(self, resource: str, uid: str, number: int) -> None:
        """Make a container with a claim request one more device."""
        if claim := self._any_claim(number):
            self.request(claim, claim.wants | {resource: claim.wants.get(resource, 0) + 1})

    def _free(self, resource: str, uid: str, number: int) -> None:
        """Release the claim of a container, or end its pod, with or without an event."""
        if claim := self._any_claim(number):
            match number // 7 % 3:
                case 0:
                    self.living[claim.uid].pop(claim.container)
                    self.send(pod.DevicesReleased(pod=claim.pod, uid=claim.uid, containers=(claim.container,)))
                case 1:
                    self._end(resource, claim.uid, number)
                case _:
                    self._vanish(resource, claim.uid, number)

    def _any_claim(self, number: int) -> Claim | None:
        keys = sorted(self.state.claims)
        return self.state.claims[keys[number % len(keys)]] if keys else None

    def _leave(self, resource: str, uid: str, number: int) -> None:
        """Remove the socket of a plugin."""
        if self.state.has_plugin(resource):
            self.send(signals.PluginLeft(socket=self.state.resources[resource].socket))

    def _repeat_entries(self, resource: str, uid: str, number: int) -> None:
        """Make a plugin list a device twice."""
        if self.state.has_plugin(resource):
            entry = devices.DeviceInfo(id=IDS[number % len(IDS)], health=devices.HEALTHY)
            generation = self.state.resources[resource].generation
            self.send(signals.DevicesListing(resource=resource, generation=generation, devices=(entry, entry)))

    def _answer_to(self, effect: Any, number: int) -> signals.DeviceSignal:
        if isinstance(effect, wanted.Allocate) and number % 7 == 6:
            return signals.AllocateAnswered(subject=effect.subject, intent=effect.intent, answers=())
        return super()._answer_to(effect, number)


def _start_phase(state: State, event: devices.ClaimEvent) -> str:
    claim = state.claim(event.uid, event.container)
    return "notifying" if claim is not None and claim.starting is not None else "idle"


def rare_transitions(*, preferred: bool) -> Observer:
    """Return a world in which a container starts while its plugin is unavailable, and requests devices again once its
    other resource is offered.
    """
    world = Observer(Policy(wait_for_resources=False))
    app = Claim(pod="default/u1", uid="u1", container="app", role="app", wants=dict.fromkeys(RESOURCES, 1))
    world.living[app.uid] = {app.container: app.wants}
    world.plug(RESOURCES[0])
    world.request(app, app.wants)
    world.reply_to_all()
    for attempt in (0, 1):
        world.send(
            pod.PreStartRequested(
                pod=app.pod, uid=app.uid, container=app.container, attempt=attempt, requested_at=world.now
            )
        )
        world.do("stop", 0)
    world.plug(RESOURCES[0])
    world.plug(RESOURCES[1], preferred=preferred)
    world.request(app, app.wants)
    return world


def random_transitions(policy: Policy, seed: int) -> Observer:
    """Perform random operations under a policy, and return the world."""
    world, chance = Observer(policy), random.Random(seed)
    for _ in range(100):
        world.do(chance.choice(ALL_OPERATIONS), chance.randrange(2**16))
    return world


@pytest.fixture(scope="module")
def observed() -> dict[ModuleType, set[Transition]]:
    """Return all transitions that happen, by the module with their table."""
    transitions = defaultdict[ModuleType, set[Transition]](set)
    worlds = chain(
        (rare_transitions(preferred=preferred) for preferred in (False, True)),
        (random_transitions(policy, seed) for policy in POLICIES.values() for seed in range(100)),
    )
    for world in worlds:
        for module, found in world.transitions.items():
            transitions[module] |= found
    return transitions


@pytest.mark.parametrize(
    ("module", "phases"),
    [(claims, get_args(ClaimPhase)), (pre_start, ()), (plugins, get_args(ResourcePhase))],
    ids=("claims", "start notifications", "resources"),
)
def test_the_table_of_phases_has_exactly_the_transitions_that_happen(
    module: ModuleType, phases: tuple[str, ...], observed: dict[ModuleType, set[Transition]]
) -> None:
    documented = table(module, *phases)
    assert sorted(observed[module] - documented) == [], "these happen and are not in the table"
    assert sorted(documented - observed[module]) == [], "these are in the table and never happen"
