"""A pod's life in tests: a Scene that sends effect results by subject."""

from __future__ import annotations

from typing import Any, Self

from chronolet.kernel.kind import EffectFailed
from chronolet.pod import signals
from chronolet.pod.decider import DECIDER, decider
from chronolet.pod.planning import probing
from chronolet.pod.planning.backoff import KUBELET, Limits
from chronolet_schemas import manifests, pleg, pod, podspec
from chronolet_schemas.envelope import Event, Message
from chronolet_schemas.podspec import Container, ContainerPort, ObjectMeta, Pod, PodSpec
from tests.deciders.given import Scene

POD = "default/web"
T0 = 1_700_000_000_000
RAW: dict[str, Any] = {"volume_devices": (podspec.VolumeDevice(name="raw"),)}
"""A container field that is never honoured, as keyword arguments."""


def container(name: str = "app", image: str = "busybox:1", **fields: Any) -> Container:
    return Container(name=name, image=image, **fields)


def manifest(*containers: Container, **spec: Any) -> Pod:
    """Return a manifest without findings."""
    return podspec.defaulted(
        Pod(
            metadata=ObjectMeta(name="web"),
            spec=PodSpec(dns_policy="Default", containers=containers or (container(),), **spec),
        )
    )


def with_port(port: int) -> Pod:
    return manifest(container(ports=(ContainerPort(container_port=80, host_port=port),)))


class Life(Scene):
    """One pod. Ids are `<container>-<attempt>` and `sandbox-<attempt>`.

    Termination messages are read immediately, and are empty, unless `reads` is False; `facts` omits these events.
    """

    def __init__(self, *, reads: bool = True, limits: Limits = KUBELET) -> None:
        super().__init__(DECIDER if limits == KUBELET else decider(frozenset((probing.KIND,)), limits=limits))
        self.at = T0
        self.reads = reads

    def when(self, message: Message, *, at: int | None = None) -> Self:
        super().when(message, at=at)
        events = self.events
        while self.reads and (unread := [one for one in self.effects if one.startswith("exit/")]):
            super().when(signals.ExitRead(subject=unread[0], intent=self.effects[unread[0]].intent))
            events = (*events, *self.events)
        self.events = events
        return self

    @property
    def facts(self) -> tuple[Event, ...]:
        return tuple(event for event in super().facts if not (self.reads and isinstance(event, pod.ExitRead)))

    def apply(self, one: Pod, uid: str = "u1", source: str = "apply") -> Self:
        return self.when(
            manifests.PodApplied(pod=one.key, uid=uid, source=source, digest=podspec.digest(one), manifest=one)
        )

    def withdraw(self, uid: str = "u1", grace: int | None = None) -> Self:
        return self.when(manifests.PodWithdrawn(pod=POD, uid=uid, source="apply", grace_period_seconds=grace))

    def answer(self, subject: str, kind: type[signals.EffectResult], **fields: Any) -> Self:
        effect = self.effects[subject]
        return self.when(kind(subject=subject, intent=effect.intent, **fields))

    def fail(self, subject: str, error: str = "boom", *, timed_out: bool = False) -> Self:
        effect = self.effects[subject]
        return self.when(
            EffectFailed(
                effect=type(effect).__name__,
                subject=subject,
                intent=effect.intent,
                error=error,
                timed_out=timed_out,
            )
        )

    def sandbox_up(self, ip: str = "10.1.0.2") -> Self:
        attempt = self.state.sandbox.attempt
        addresses = {"ip": ip, "host_ip": "192.0.2.1"}
        return self.answer("sandbox", signals.SandboxUp, id=f"sandbox-{attempt}", started_at=self.at, **addresses)

    def kept(self) -> Self:
        """Report that the changed spec is on disk."""
        return self.answer("spec", signals.SpecKept)

    def image_there(self, name: str = "app") -> Self:
        found = {"image_id": "sha256:1", "size_bytes": 1, "pulled": False}
        return self.answer(f"container/{name}", signals.ImagePresent, **found)

    def up(self, name: str = "app") -> Self:
        attempt = self.state.container(name).attempt
        return self.answer(f"container/{name}", signals.ContainerUp, id=f"{name}-{attempt}", started_at=self.at)

    def waits_out(self, name: str = "app") -> Self:
        """Advance to the end of a back-off, past all its repeated reports."""
        while f"container/{name}" not in self.effects:
            self.wake()
        return self

    def start(self, name: str = "app") -> Self:
        """Report that the image of a container is present, then that the container has started."""
        return self.image_there(name).up(name)

    def dies(self, name: str = "app", code: int = 1, *, after: int = 1000, reason: str = "Error") -> Self:
        """Advance the clock by `after` milliseconds, and send pleg's report that the running attempt has ended."""
        one = self.state.container(name)
        self.at += after
        return self.when(
            pleg.ContainerDied(
                pod=POD,
                uid=self.state.uid,
                container=name,
                attempt=one.attempt,
                id=one.id,
                exit_code=code,
                reason=reason,
                started_at=one.started_at,
                finished_at=self.at,
            )
        )

    def sandbox_dies(self, *, after: int = 60_000) -> Self:
        sandbox = self.state.sandbox
        self.at += after
        return self.when(
            pleg.ContainerDied(
                pod=POD,
                uid=self.state.uid,
                container=pleg.SANDBOX,
                attempt=sandbox.attempt,
                id=sandbox.id,
                exit_code=137,
                reason="Error",
                started_at=sandbox.started_at,
                finished_at=self.at,
            )
        )

    def runs(
        self, container_id: str, name: str = "app", attempt: int = 0, uid: str = "u1", started_at: int = 0
    ) -> Self:
        return self.when(
            pleg.ContainerStarted(
                pod=POD,
                uid=uid,
                container=name,
                attempt=attempt,
                id=container_id,
                started_at=started_at or self.at,
            )
        )

    def stopped(self, subject: str = "container/app", code: int = 0) -> Self:
        effect: Any = self.effects[subject]
        return self.answer(
            subject,
            signals.ContainerDead,
            id=effect.id,
            exit_code=code,
            reason="Error" if code else "Completed",
            finished_at=self.at,
        )

    def end(self) -> Self:
        """Report that the sandbox is stopped and that the pod is cleaned up."""
        return self.answer("sandbox", signals.SandboxDown, id=self.state.sandbox.id).answer("pod", signals.CleanedUp)


def running(*containers: Container, limits: Limits = KUBELET, **spec: Any) -> Life:
    """Return a pod whose containers are all running."""
    life = Life(limits=limits).apply(manifest(*containers, **spec)).sandbox_up()
    for one in life.state.containers:
        life.start(one.name)
    return life
