"""The devices decider with simulated plugins that answer immediately, as a case prescribes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chronolet.devices import signals, wanted
from chronolet.devices.context import Policy
from chronolet.devices.decider import decider
from chronolet.devices.plugins.validation import SUPPORTED_VERSION
from chronolet.devices.state import State
from chronolet.kernel.decider import Decider, Due
from chronolet.kernel.step.snapshots import EntityImage, decode_states, encode_states
from chronolet_schemas import devices, pod
from chronolet_schemas.envelope import Event
from tests.conformance.outcome import Case

FOLDER = "/plugins"
RESOURCE = "r.test/r"
_ROLES = {"init": "init", "restartable_init": "sidecar", "app": "app"}


class Node:
    """The decider with plugins that answer immediately."""

    def __init__(self, given: Case | None = None, policy: Policy = Policy(wait_for_resources=False)) -> None:  # noqa: B008
        self.decider: Decider[State] = decider(policy)
        self.given = given or {}
        self.state = self.decider.initial
        self.now = 0
        self.calls: list[wanted.Wanted] = []
        self.events: list[Event] = []
        self.options = devices.PluginOptions(**self.given.get("plugin_options", {}))

    def handle(self, message: Any) -> list[Event]:
        """Decide one message and the answers of plugins to its effects; return all events."""
        found = self._decide(message)
        while (answer := self._answer()) is not None:
            found += self._decide(answer)
        self.events += found
        return found

    def _decide(self, message: Any) -> list[Event]:
        events = list(self.decider.decide(self.state, message, self.now))
        for event in events:
            self.state = self.decider.evolve(self.state, event) or self.decider.initial
        return events

    def _answer(self) -> signals.Answered | None:
        for effect in self.decider.outstanding(self.state):
            intent: dict[str, Any] = {"subject": effect.subject, "intent": effect.intent}
            match effect:
                case wanted.Allocate():
                    self.calls.append(effect)
                    count = sum(1 for one in self.calls if isinstance(one, wanted.Allocate))
                    if count in self.given.get("plugin_allocate_fails_on_call", ()):
                        return signals.AllocateRefused(**intent, error="it fails")
                    return signals.AllocateAnswered(**intent, answers=(devices.Answer(),))
                case wanted.Prefer():
                    self.calls.append(effect)
                    prefers = tuple(self.given.get("plugin_prefers", ()))
                    return signals.PreferenceAnswered(**intent, devices=prefers)
                case wanted.PreStart():
                    self.calls.append(effect)
                    return signals.PreStartAnswered(**intent)
                case _:
                    continue
        return None

    def list_devices(self, resource: str, listed: Iterable[devices.DeviceInfo]) -> None:
        """Send a device list from the resource's plugin, which registers first if necessary."""
        known = self.state.resources.get(resource)
        if known is None or not known.has_plugin:
            self.register(resource)
        generation = self.state.resources[resource].generation
        self.handle(signals.DevicesListing(resource=resource, generation=generation, devices=tuple(listed)))

    def register(self, resource: str, version: str = SUPPORTED_VERSION) -> list[Event]:
        """Register a plugin for the resource; return the events that follow."""
        return self.handle(
            signals.PluginRegistering(
                resource=resource, versions=(version,), endpoint="p.sock", folder=FOLDER, options=self.options
            )
        )

    def stop_plugin(self, resource: str) -> None:
        """End the plugin's stream."""
        generation = self.state.resources[resource].generation
        self.handle(signals.EndpointStopped(resource=resource, generation=generation))

    def restart(self) -> None:
        """Restart the agent: write the state to a snapshot, read it back, and reopen the registration socket."""
        image = encode_states({"node": EntityImage(state=self.state)})
        self.state = decode_states(State, image)["node"].state
        self.handle(signals.RegistryOpened())

    def request(
        self, uid: str, container: str, resources: Mapping[str, int], role: str = "app", **more: Any
    ) -> list[Event]:
        """Request devices for a container; return the events that follow. `more`: further fields of the request."""
        return self.handle(
            pod.DevicesRequested(
                pod=f"default/{uid}",
                uid=uid,
                container=container,
                role=_ROLES[role],  # type: ignore[arg-type]
                resources=dict(resources),
                requested_at=self.now,
                **more,
            )
        )

    def record(self, uid: str, container: str, resource: str, ids: Sequence[str]) -> None:
        """Record an allocation to a container."""
        event = devices.DevicesChosen(
            pod=f"default/{uid}",
            uid=uid,
            container=container,
            role="app",
            wants={resource: len(ids)},
            at=self.now,
            resource=resource,
            devices=tuple(ids),
        )
        claim = self.state.claims.get(f"{uid}/{container}")
        done = devices.DevicesAllocated(
            pod=event.pod,
            uid=uid,
            container=container,
            resource=resource,
            allocation=devices.Allocation(devices=tuple(ids)),
            earlier=claim.held if claim else {},
        )
        for one in (event, done):
            self.state = self.decider.evolve(self.state, one) or self.decider.initial

    def advance_to(self, seconds: int) -> None:
        """Set the clock to `seconds`, and handle the timers that are due by then."""
        self.now = seconds * 1000
        while (due := self.decider.due(self.state)) is not None and due <= self.now:
            self.handle(Due(at=due))


def device_infos(listed: Iterable[Mapping[str, str]]) -> list[devices.DeviceInfo]:
    return [devices.DeviceInfo(id=one["id"], health=one["health"].capitalize()) for one in listed]
