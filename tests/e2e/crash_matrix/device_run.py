"""One run of two pods that want the last device of a real plugin, with at most one kill.

Input: an agent farm, an engine, the crash point and what is killed there. Output: a `RunResult`, or an error.

    agent and plugin start -> two pods are added -> one gets the device and runs, the other is rejected, as by a kubelet
    -> both are removed -> a third pod gets the device and runs -> it is removed -> no device is in use
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from chronolet.devices.decider import DECIDER
from chronolet.devices.state import State
from chronolet.ports.runtime import labels
from chronolet_schemas import pod
from tests.e2e.fault_injection.agent_farm import AgentFarm, AgentJob
from tests.e2e.fault_injection.faults import KillTarget
from tests.e2e.fault_injection.points import Point
from tests.e2e.fault_injection.service_manager import ServiceManager
from tests.e2e.journal import Journal
from tests.support.devices.sample_plugin import SamplePlugin, sample_plugin
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import PrivateRedis, private_redis

RESOURCE = "last.test/thing"
PODS = ("one", "two")
THIRD = "three"
_SECONDS = 60


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run. `names`: the crash points that were passed, if they were recorded."""

    names: list[str]
    killed: bool
    """Whether the kill has happened."""
    exits: list[int]
    events: list[str]
    """The types of all events of the actor `devices`, in order."""


def run_devices(
    farm: AgentFarm, engine: PrivateDocker, node: str, *, point: Point | None = None, target: KillTarget = "agent"
) -> RunResult:
    """Complete a run with a separate folder, plugin and redis-server. If no `point` is given, its crash points are
    recorded.
    """
    with private_redis() as server:
        root = server.folder / "agent"
        (root / "manifests").mkdir(parents=True)
        job = AgentJob(
            flags={
                "redis": server.url,
                "root_dir": str(root),
                "node": node,
                "docker": engine.host,
                "cgroup_root": engine.cgroup_root(node),
                "pod_manifest_path": str(root / "manifests"),
                "port": "0",
            },
            log=str(root / "log"),
            recording="" if point else str(root / "points"),
            point=point,
            target=target,
            redis_pid=server.pid,
            kill_marker=str(root / "kill-marker"),
        )
        options = ("--resource", RESOURCE, "--devices", "1", "--device-node", "/dev/fuse::r")
        calls = ("--options-when-asked", "--preferred", "--pre-start")
        with sample_plugin(*options, *calls, folder=root / "kubelet" / "device-plugins") as plugin:
            return _DeviceRun(farm, engine, server, job, plugin).run()


class _DeviceRun:
    def __init__(
        self, farm: AgentFarm, engine: PrivateDocker, server: PrivateRedis, job: AgentJob, plugin: SamplePlugin
    ) -> None:
        self.node = job.flags["node"]
        self.api = engine.api()
        self.root = Path(job.flags["root_dir"])
        self.job = job
        self.plugin = plugin
        self.journal = Journal(server.url, self.node)
        self.service_manager = ServiceManager(farm, server, job)

    def run(self) -> RunResult:
        try:
            self._run()
        except BaseException as error:
            error.add_note(
                f"{self.job.point} in {self.node}; killed: {self.service_manager.killed}\n{self.journal.tail(40)}"
            )
            error.add_note("plugin: " + "\n".join(self.plugin.lines))
            error.add_note("agent's log: " + "\n".join((self.root / "log").read_text().splitlines()[-60:]))
            raise
        finally:
            self.service_manager.kill()
            self.journal.close()
        recorded = self.root / "points"
        return RunResult(
            names=recorded.read_text().splitlines() if recorded.exists() else [],
            killed=self.service_manager.killed,
            exits=self.service_manager.exits,
            events=[line.entry.type for line in self.journal.lines if line.entry.entity.startswith("devices/")],
        )

    def _run(self) -> None:
        for name in PODS:
            self._write(name)
        first = self.journal.wait_for("the first to run", self._running_pod, _SECONDS)
        second = next(name for name in PODS if name != first)
        self.journal.wait_for("the other to be rejected", lambda: self._is_rejected(second), _SECONDS)
        self._remove(first, second)
        self._write(THIRD)
        self.journal.wait_for("the third to run", lambda: self._running_pod() == THIRD, _SECONDS)
        self._remove(THIRD)
        self.journal.wait_for("the device to be free", lambda: not self._state().claims, _SECONDS)
        if self.job.point is not None:
            self.service_manager.wait_for_kill(self.journal)
        self._check(first, THIRD)
        left = self.api.containers(all=True, filters={"label": f"{labels.NODE}={self.node}"})
        assert not left, left

    def _check(self, first: str, second: str) -> None:
        """Check that the device had one owner at a time, in log and engine, and that no container was started twice or
        touched.
        """
        assert not self._state().used, self._state().used
        owners = (first, second)
        started = {name: self._one(pod.ContainerStarted, name) for name in owners}
        exited = {name: self._one(pod.ContainerExited, name) for name in owners}
        assert exited[first].finished_at <= started[second].started_at, "both had the device at the same time"
        for one in exited.values():
            assert (one.exit_code, one.reason) == (0, "Completed"), f"it did not end as expected: {one}"
        granted = {name: self._one(pod.DevicesGranted, name).devices for name in owners}
        assert granted == {name: {RESOURCE: ("thing-0",)} for name in owners}
        assert len(self.journal.events(pod.DevicesGranted)) == len(owners)
        assert self.plugin.count("allocated thing-0") == self.plugin.count(" allocate ") >= len(owners)

    def _one(self, kind: type[Any], name: str) -> Any:
        found = self.journal.events(kind, pod=f"default/{name}")
        assert len(found) == 1, found
        return found[0]

    def _state(self) -> State:
        """Return the state of `devices`, after checking that at most one pod owned the device after each event."""
        state = DECIDER.initial
        for line in self.journal.lines:
            if line.entry.entity == "devices/node":
                folded = DECIDER.evolve(state, line.event)
                assert folded is not None
                state = folded
                owners = {claim for claims in state.holders(RESOURCE).values() for claim in claims}
                assert len(owners) <= 1, f"{owners} at {line.entry.position}"
        return state

    def _running_pod(self) -> str:
        for name in (*PODS, THIRD):
            status = self.journal.status(f"default/{name}")
            states = [one.state for one in status.container_statuses] if status is not None else []
            if states and all(one.running for one in states) and self._is_ready(name):
                return name
        return ""

    def _is_ready(self, name: str) -> bool:
        """Return whether the program has opened the device and handles SIGTERM."""
        app = self.journal.pods[f"default/{name}"].container("app")
        return app is not None and b"ready" in self.api.logs(app.id)

    def _is_rejected(self, name: str) -> bool:
        status = self.journal.status(f"default/{name}")
        return status is not None and (status.reason, "Requested: 1, Available: 0" in status.message) == (
            "UnexpectedAdmissionError",
            True,
        )

    def _remove(self, *names: str) -> None:
        for name in names:
            (self.root / "manifests" / f"{name}.json").unlink()
        ended = {f"default/{name}" for name in names}
        self.journal.wait_for(
            f"the end of {names}", lambda: ended <= {one.pod for one in self.journal.events(pod.PodEnded)}, _SECONDS
        )

    def _write(self, name: str) -> None:
        script = "(: < /dev/fuse) || exit 9; trap 'exit 0' TERM; echo ready; sleep 3600 & wait"
        container = {
            "name": "app",
            "image": "chronolet/busybox:1",
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c", script],
            "resources": {"limits": {RESOURCE: "1"}},
        }
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 60, "containers": [container]},
        }
        unfinished = self.root / f"{name}.json"
        unfinished.write_bytes(msgspec.json.encode(manifest))
        unfinished.rename(self.root / "manifests" / f"{name}.json")


def of_devices(found: Sequence[Point]) -> list[Point]:
    """Return the crash points about devices: those of plugins, of allocation, and of a pod's requests and releases."""
    return [one for one in found if one.place.split()[1].startswith(("devices", "plugins")) or _is_of_devices(one.type)]


def _is_of_devices(event: str) -> bool:
    return event.startswith(("pod.Devices", "pod.Admission", "pod.PreStart", "pod.PodEnded"))
