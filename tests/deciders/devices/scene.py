"""Scenes of plugins, devices and pods, for the tests of the decider of devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chronolet.devices import signals, wanted
from chronolet.devices.context import Policy
from chronolet.devices.decider import decider
from chronolet.devices.state import Claim, State
from chronolet_schemas import devices, pod
from tests.deciders.given import Scene

GPU, NIC = "vendor.test/gpu", "vendor.test/nic"
FOLDER = "/plugins"
STRICT = Policy(node="n1", wait_for_resources=False)
PATIENT = Policy(node="n1")


class Devices(Scene):
    """The decider of devices, with one method per thing that plugins and pods do."""

    def __init__(self, policy: Policy = PATIENT) -> None:
        super().__init__(decider(policy))
        self.when(signals.RegistryOpened(), at=1_000)

    @property
    def now(self) -> State:
        state: State = self.state
        return state

    def claim(self, uid: str = "u1", container: str = "app") -> Claim:
        return self.now.claims[f"{uid}/{container}"]

    def registers(self, resource: str = GPU, **fields: Any) -> Devices:
        defaults: dict[str, Any] = {"endpoint": f"{resource.rpartition('/')[2]}.sock", "folder": FOLDER}
        defaults |= {"versions": ("v1beta1",), "options": None if "by" in fields else devices.PluginOptions()}
        self.when(signals.PluginRegistering(resource=resource, **(defaults | fields)))
        return self

    def lists(
        self, *ids: str, resource: str = GPU, ill: Sequence[str] = (), nodes: Mapping[str, int] | None = None
    ) -> Devices:
        near = nodes or {}
        listed = [(one, "Healthy") for one in ids] + [(one, "Unhealthy") for one in ill]
        self.when(
            signals.DevicesListing(
                resource=resource,
                generation=self.now.resources[resource].generation,
                devices=tuple(
                    devices.DeviceInfo(id=one, health=health, nodes=(near[one],) if one in near else ())
                    for one, health in listed
                ),
            )
        )
        return self

    def plugged(self, *ids: str, resource: str = GPU, **fields: Any) -> Devices:
        return self.registers(resource, **fields).lists(*ids, resource=resource)

    def stops(self, resource: str = GPU, error: str = "") -> Devices:
        generation = self.now.resources[resource].generation
        self.when(signals.EndpointStopped(resource=resource, generation=generation, error=error))
        return self

    def asks(
        self, wants: Mapping[str, int], uid: str = "u1", container: str = "app", role: Any = "app", **more: Any
    ) -> Devices:
        self.when(
            pod.DevicesRequested(
                pod=f"default/{uid}",
                uid=uid,
                container=container,
                role=role,
                resources=dict(wants),
                requested_at=self.at,
                **more,
            )
        )
        return self

    def question(self, uid: str = "u1", container: str = "app") -> Any:
        """Return the call that the container's plugin has to answer."""
        return self.effects[f"claim/{uid}/{container}"]

    def about(self, uid: str = "u1", container: str = "app") -> dict[str, str]:
        effect = self.question(uid, container)
        return {"subject": effect.subject, "intent": effect.intent}

    def allocates(self, uid: str = "u1", container: str = "app", **answer: Any) -> Devices:
        """Make the plugin allocate the chosen devices."""
        ref = self.about(uid, container)
        self.when(signals.AllocateAnswered(**ref, answers=(devices.Answer(**answer),), milliseconds=7))  # type: ignore[arg-type]
        return self

    def refuses(
        self, error: str = "rpc error: it burns", uid: str = "u1", container: str = "app", *, away: bool = False
    ) -> Devices:
        self.when(signals.AllocateRefused(**self.about(uid, container), error=error, away=away))  # type: ignore[arg-type]
        return self

    def offers_preference(self) -> Devices:
        """Make the plugin register again, offer GetPreferredAllocation and list the same devices."""
        listed = sorted(self.now.resources[GPU].devices)
        return self.registers(options=devices.PluginOptions(preferred_allocation=True)).lists(*listed)

    def prefers(self, *ids: str, uid: str = "u1", container: str = "app") -> Devices:
        self.when(signals.PreferenceAnswered(**self.about(uid, container), devices=ids))  # type: ignore[arg-type]
        return self

    def starts(self, attempt: int, uid: str = "u1", container: str = "app") -> Devices:
        self.when(
            pod.PreStartRequested(
                pod=f"default/{uid}", uid=uid, container=container, attempt=attempt, requested_at=self.at
            )
        )
        return self

    def releases(self, *containers: str, uid: str = "u1") -> Devices:
        self.when(pod.DevicesReleased(pod=f"default/{uid}", uid=uid, containers=containers))
        return self

    def ends(self, uid: str = "u1") -> Devices:
        self.when(pod.PodEnded(pod=f"default/{uid}", uid=uid))
        return self

    def has(self, uid: str = "u1", container: str = "app") -> dict[str, tuple[str, ...]]:
        """Return the devices of a container, by resource."""
        return self.claim(uid, container).devices()

    @property
    def pending(self) -> devices.DevicesPending:
        return self.only(devices.DevicesPending)

    @property
    def allocate(self) -> wanted.Allocate:
        effect = self.question()
        assert isinstance(effect, wanted.Allocate)
        return effect
