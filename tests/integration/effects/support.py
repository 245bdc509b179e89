"""An effect context that can kill a worker at any point, and pods to start, for the tests of workers.

Input: a real engine. Output: effects, run by the workers as the kernel would run them.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from chronolet.adapters.cgroups import ContainerGroups
from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.http.requests import HttpRequests
from chronolet.adapters.images.builtin import builtin
from chronolet.adapters.machine.host import LinuxHost
from chronolet.adapters.machine.processes import HostProcesses
from chronolet.adapters.state_folder.pod_logs import PodLogFolders
from chronolet.adapters.state_folder.specs import SpecFiles
from chronolet.adapters.volumes import HostVolumes
from chronolet.kernel.effects.slot import LostOwnership
from chronolet.kernel.kind import Effect
from chronolet.pod import effects, wanted
from chronolet.pod.workers.images.ensure import Pulls
from chronolet.pod.workers.timing import Timing
from chronolet.ports.devices.cdi import Cdi, NoCdi
from chronolet.ports.machine.cgroups import ContainerCgroups
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.processes import Processes
from chronolet.ports.runtime.registries import NoKeys
from chronolet.ports.runtime.runtime import ContainerState, Runtime
from chronolet.rules.resources.container_limits import Holding
from chronolet_schemas.envelope import Signal
from chronolet_schemas.podspec import Container, ObjectMeta, Pod, PodSpec, Volume
from tests.support.docker.images import BUSYBOX, PAUSE
from tests.support.scratch import HANG_SECONDS

NODE = "test-node"
UID = "0123456789abcdef0123456789abcdef"
RUN = "the-run"
POD = "default/web"
SHELL = "/bin/sh"
OBEDIENT = ("-c", 'trap "exit 4" TERM; echo ready; while :; do sleep 1 & wait $!; done')
DEAF = ("-c", 'trap "" TERM; echo ready; while :; do sleep 1 & wait $!; done')
PATIENT = Timing(after_kill_seconds=HANG_SECONDS)


def ensure(image: str, policy: str) -> wanted.EnsureImage:
    """Return the effect that provides an image for the container `app`."""
    return wanted.EnsureImage(
        subject="container/app",
        intent="image/0",
        pod=POD,
        uid=UID,
        container="app",
        attempt=0,
        image=image,
        policy=policy,
    )


class PatientRuntime(DockerRuntime):
    """A runtime whose calls wait for an engine that is stalled for a while."""

    def __init__(self, host: str, *, pool_size: int = 16) -> None:
        super().__init__(host, timeout_seconds=HANG_SECONDS, list_seconds=HANG_SECONDS, pool_size=pool_size)

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = HANG_SECONDS) -> ContainerState | None:
        return super().inspect(container_id_or_name, timeout_seconds=max(timeout_seconds, HANG_SECONDS))


class Killed(BaseException):
    """A simulated kill of the process. No worker may catch it."""


@dataclass
class Context:
    """An `EffectContext` that records the points it passes, and raises Killed at point number `dies_at` (from 1; 0:
    never).
    """

    cause: str = "1-1"
    entity: str = POD
    dies_at: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)
    points: list[str] = field(default_factory=list)
    at: dict[str, Callable[[], None]] = field(default_factory=dict)
    """Maps points to the functions that are called there."""
    sent: list[tuple[Signal, str]] = field(default_factory=list)

    def fence(self, point: str) -> None:
        if self.cancelled.is_set():
            raise LostOwnership(point)
        self._pass(f"before {point}")

    def done(self, point: str) -> None:
        self._pass(f"after {point}")

    def send(self, signal: Signal, *, cause: str = "") -> None:
        self.sent.append((signal, cause))

    def _pass(self, point: str) -> None:
        self.points.append(point)
        if point in self.at:
            self.at[point]()
        if len(self.points) == self.dies_at:
            raise Killed(point)


@dataclass
class World:
    """A node's adapters and workers."""

    runtime: Runtime
    root: Path
    node: str = NODE
    pulls: Pulls | None = None
    cdi: Cdi = field(default_factory=NoCdi)
    cgroups: ContainerCgroups = field(default_factory=ContainerGroups)
    holding: Holding = field(default_factory=Holding)
    timing: Timing = PATIENT
    processes: Processes = field(default_factory=HostProcesses)

    def __post_init__(self) -> None:
        deps = effects.PodDependencies(
            runtime=self.runtime,
            volumes=HostVolumes(self.root),
            specs=SpecFiles(self.root),
            requests=HttpRequests(),
            host=LinuxHost(self.root),
            node=self.node,
            pause_image=PAUSE.reference,
            builtin=builtin,
            pulls=self.pulls or Pulls(keyring=NoKeys()),
            cdi=self.cdi,
            logs=PodLogFolders(self.root / "logs" / "pods"),
            cgroups=self.cgroups,
            holding=self.holding,
            run=lambda: RUN,
            processes=self.processes,
            timing=self.timing,
        )
        self.jobs = effects.jobs(deps)

    def with_timing(self, **seconds: float) -> "World":
        """Return the same node with new workers, which use these time settings."""
        return replace(self, timing=structs.replace(self.timing, **seconds))

    def run(self, effect: Effect, context: Context | None = None) -> Any:
        """Run the effect until it is complete, and return its result."""
        return self.jobs[type(effect)].run(effect, context or Context())

    def run_through_every_death(self, make: Callable[[], Effect], check: Callable[[Any], None]) -> int:
        """Kill the worker at its first point and run it again; repeat this with its second point, its third, and so on.

        Each time, `make` prepares the initial state and returns the effect, and `check` gets the result of the second
        run. Return the number of points.
        """
        dies_at = 0
        while True:
            dies_at += 1
            effect = make()
            first = Context(dies_at=dies_at)
            try:
                self.run(effect, first)
            except Killed:
                check(self.run(effect))
            else:
                return dies_at - 1

    def ours(self) -> list[ContainerState]:
        return list(self.runtime.list(labels.of_node(self.node)))

    def sandbox(self, manifest: Pod, *, attempt: int = 0) -> Any:
        return self.run(start_sandbox(manifest, attempt=attempt))


def pod(*containers: Container, volumes: tuple[Volume, ...] = ()) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="web", namespace="default", uid=UID),
        spec=PodSpec(containers=containers, volumes=volumes),
    )


def container(*args: str, name: str = "app", command: str = SHELL, **more: Any) -> Container:
    return Container(name=name, image=BUSYBOX.reference, command=(command,), args=args, **more)


def start_sandbox(manifest: Pod, *, attempt: int = 0) -> wanted.StartSandbox:
    return wanted.StartSandbox(
        subject="sandbox",
        intent=f"start/{attempt}",
        pod=POD,
        uid=UID,
        attempt=attempt,
        spec_hash="s",
        manifest=manifest,
    )


def start_container(
    manifest: Pod, sandbox_id: str, *, name: str = "app", attempt: int = 0, spec_hash: str = "h", sandbox_ip: str = ""
) -> wanted.StartContainer:
    return wanted.StartContainer(
        subject=f"container/{name}",
        intent=f"start/{attempt}",
        pod=POD,
        uid=UID,
        container=name,
        attempt=attempt,
        sandbox_id=sandbox_id,
        sandbox_ip=sandbox_ip,
        spec_hash=spec_hash,
        image_id="",
        manifest=manifest,
    )


def stop_container(
    container_id: str, *, grace: int, deadline: int, attempt: int = 0, with_pod: bool = False
) -> wanted.StopContainer:
    return wanted.StopContainer(
        subject="container/app",
        intent=f"stop/{attempt}",
        pod=POD,
        uid=UID,
        container="app",
        attempt=attempt,
        id=container_id,
        grace_period_seconds=grace,
        deadline=deadline,
        with_pod=with_pod,
    )


def cleanup() -> wanted.Cleanup:
    return wanted.Cleanup(subject="pod", intent="cleanup", pod=POD, uid=UID)
