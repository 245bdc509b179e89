"""One run of a pod, from its manifest until nothing is left, with at most one kill.

Input: an agent farm, an engine with its events, a host port, the crash point and what is killed there. Output: a
`RunResult`. The pods are those of `pods`.

    agent starts -> the pod is added (-> its port is in use, the sandbox fails and is removed -> the port is free)
    -> all run, the page is served (-> the liveness probe fails, the successor runs) -> the server's process is killed
    -> it runs again, and serves -> (long: killed again, CrashLoopBackOff, it runs again)
    -> (a container is changed, then the sandbox) -> the pod is removed -> nothing is left
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from chronolet.adapters.manifest_files import read_documents
from chronolet.kernel.ownership.life_lock import proven_dead
from chronolet.kernel.storage.store import StoreUnreachable
from chronolet.node.composition.kinds import SHARDS
from chronolet.node.settings.table import ALL_ACTORS
from chronolet.ports.runtime import labels
from chronolet_schemas import codec, kernel, manifests, pleg, pod, registry
from chronolet_schemas.envelope import Command
from chronolet_schemas.keys import Shard, shards_of
from tests.e2e.crash_matrix import pods
from tests.e2e.crash_matrix.hook_server import HookServer
from tests.e2e.crash_matrix.run_record import RunRecord, creations, of_last_attempt, record_of, status_lines
from tests.e2e.docker_events import DockerEvents
from tests.e2e.fault_injection.agent_farm import AgentFarm, AgentJob
from tests.e2e.fault_injection.faults import KillTarget
from tests.e2e.fault_injection.points import Point, without_ids
from tests.e2e.fault_injection.service_manager import ServiceManager
from tests.e2e.journal import Journal
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import PrivateRedis, private_redis

POD = "default/web"
T = TypeVar("T")
HOSTED = [shard for kind in ALL_ACTORS for shard in shards_of(kind, SHARDS[kind])]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What happens in a run.
    `port_taken`: at first another program holds the host port.
    `probe_failures`: number of failures of the liveness probe.
    `kills`: number of kills of the server's process; a back-off of ten seconds follows the second one.
    `changes`: number of changes to the pod, which require `source` to be `apply`.
    `source`: how the pod is added and removed: as a file in the folder, or with the commands that `apply` and `delete`
    send.
    """

    point: Point | None = None
    target: KillTarget = "agent"
    kills: int = 1
    source: Literal["file", "apply"] = "file"
    pod: pods.Kind = "web"
    changes: int = 0
    port_taken: bool = False
    probe_failures: int = 0


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run."""

    plan: Plan
    record: RunRecord
    names: list[str]
    """The crash points that were passed, if they were recorded."""
    killed: bool
    """Whether the kill has happened."""
    exits: list[int]
    """Exit statuses of agents that ended by themselves."""
    seconds: float


class SharedSetup:
    """Objects that all runs share."""

    def __init__(
        self, farm: AgentFarm, engine: PrivateDocker, docker_events: DockerEvents, hook_server: HookServer
    ) -> None:
        self.farm = farm
        self.engine = engine
        self.docker_events = docker_events
        self.hook_server = hook_server
        self.api = engine.api()


def run_pod(shared: SharedSetup, plan: Plan, node: str, port: int, *, record: bool = False) -> RunResult:
    """Run the plan to its end, with a separate folder and redis-server."""
    began = time.monotonic()
    with private_redis() as server:
        one = _PodRun(shared, server, plan, node, port, record=record)
        with one.running():
            found = one.run()
        return RunResult(
            plan=plan,
            record=found,
            names=one.recording.read_text().splitlines() if record else [],
            killed=one.service_manager.killed,
            exits=one.service_manager.exits,
            seconds=time.monotonic() - began,
        )


class _PodRun:
    def __init__(
        self, shared: SharedSetup, server: PrivateRedis, plan: Plan, node: str, port: int, *, record: bool
    ) -> None:
        self.shared = shared
        self.plan = plan
        self.node = node
        self.port = port
        self.root = server.folder / "agent"
        self.folder = self.root / "manifests"
        self.folder.mkdir(parents=True)
        self.hooks = self.root / "hooks"
        self.hooks.mkdir()
        self._well = self.hooks / pods.WELL
        self.setup = pods.Setup(port=port, hooks=str(self.hooks), hook_server=shared.hook_server.port, node=node)
        self.recording = self.root / "points"
        self.journal = Journal(server.url, node)
        self.statuses: dict[str, list[str]] = {}
        self.service_manager = ServiceManager(shared.farm, server, self._job(server, record=record))

    @contextmanager
    def running(self) -> Iterator[None]:
        """On exit, kill the agent if it is still running, and close the journal. The tail of the node's log and of the
        agent's own log is added to errors.
        """
        try:
            yield
        except BaseException as error:
            error.add_note(f"{self.plan} in {self.node}; killed: {self.service_manager.killed}\n{self.journal.tail()}")
            error.add_note("agent's log: " + "\n".join(Path(self.root / "log").read_text().splitlines()[-150:]))
            raise
        finally:
            self.service_manager.kill()
            self.journal.close()

    def run(self) -> RunRecord:
        self._well.touch()
        self._add_with_port_taken() if self.plan.port_taken else self._add()
        self._checkpoint("running", lambda: self._running(0))
        before = self._started_at()
        for number in range(1, self.plan.probe_failures + 1):
            self._fail_probe()
            self._checkpoint(f"probe failure {number}", lambda number=number: self._running(number))
        for kill in range(1, self.plan.kills + 1):
            self._kill_server_process()
            self._checkpoint(f"restarted {kill}", lambda kill=kill: self._running(kill))
        # The other container and the sandbox kept running, whatever was killed.
        self._check_untouched(before, "server")
        self._change_all()
        self._remove()
        ended = self.journal.wait_for_event(pod.PodEnded)
        self.journal.wait_for("the removals of all containers, by pleg", self._all_removed)
        self._wait_and_stop()
        self._check_nothing_left(ended.uid)

        created, unfinished = creations(self.journal.lines)
        assert not unfinished, unfinished
        assert created or self.plan.point is not None, "nothing was created ahead of its start"

        def plain(text: str) -> str:
            without_names = without_ids(text.replace(ended.uid, "UID").replace(f"/{self.node}/", "/NODE/"))
            return without_names.replace(f"port={self.port}", "port=PORT").replace(f":{self.port}", ":PORT")

        docker_events = self.shared.docker_events
        actions, signals = docker_events.actions(self.node), docker_events.signals(self.node)
        record = record_of(self.journal.lines, actions, signals, self.statuses, plain, hooks=self._hooks())
        return of_last_attempt(record) if self.plan.port_taken else record

    # -- actions ---------------------------------------------------------------------------------------------------

    def _job(self, server: PrivateRedis, *, record: bool) -> AgentJob:
        return AgentJob(
            flags={
                "redis": server.url,
                "root_dir": str(self.root),
                "node": self.node,
                "docker": self.shared.engine.host,
                "cgroup_root": self.shared.engine.cgroup_root(self.node),
                "pod_manifest_path": str(self.folder),
                "port": "0",
            },
            log=str(self.root / "log"),
            recording=str(self.recording) if record else "",
            point=self.plan.point,
            target=self.plan.target,
            redis_pid=server.pid,
            kill_marker=str(self.root / "kill-marker"),
        )

    def _add(self, changes: int = 0) -> None:
        manifest = msgspec.json.encode(pods.manifest(self.plan.pod, self.setup, changes))
        if self.plan.source == "apply":
            (document,) = read_documents(manifest, "web.json").pods
            self._command(manifests.ApplyPods(request=f"apply {self.node} {changes}", pods=(document,)))
            return
        unfinished = self.folder / ".web.json"
        unfinished.write_bytes(manifest)
        unfinished.rename(self.folder / "web.json")

    def _add_with_port_taken(self) -> None:
        """Add the pod while another program holds the host port: its sandbox fails, and everything created for it is
        removed.
        """
        with self.shared.engine.namespace.call(lambda: socket.create_server(("0.0.0.0", self.port))):
            self._add()
            self.journal.wait_for_event(pod.SandboxStartFailed)
            self.journal.wait_for("the removal of the failed sandbox", lambda: not self._containers())

    def _fail_probe(self) -> None:
        """Let the liveness probe fail until its container is being stopped because of it."""
        already = len(self.journal.events(pod.ContainerStopRequested, reason="LivenessFailed"))
        self._well.unlink()
        self.journal.wait_for(
            "the stop of the container whose probe failed",
            lambda: len(self.journal.events(pod.ContainerStopRequested, reason="LivenessFailed")) > already,
        )
        self._well.touch()

    def _change_all(self) -> None:
        """First change a container: the others are not touched. Then change the sandbox: everything is recreated."""
        for change in range(1, self.plan.changes + 1):
            before = self._started_at()
            self._add(change)
            self._checkpoint(f"changed {change}", lambda change=change: self._changed(change))
            if change == 1:
                self._check_untouched(before, "writer")

    def _check_untouched(self, before: Mapping[str, str], but: str) -> None:
        after = self._started_at()
        assert {name: before[name] for name in before if f"_{but}_" not in name}.items() <= after.items()

    def _remove(self) -> None:
        if self.plan.source == "apply":
            self._command(manifests.DeletePods(request=f"delete {self.node}", pods=(POD,)))
        else:
            (self.folder / "web.json").unlink()

    def _command(self, command: Command) -> None:
        """Send a command until the server accepts it, and wait for its result. The request id makes repetitions
        idempotent.
        """
        shard, name = Shard("manifests"), registry.type_of(type(command))
        data = codec.encode(command)
        self.journal.wait_for_event(kernel.LogStarted)
        self.journal.wait_for(
            f"the server to accept {name}",
            lambda: self._answer(lambda: self.journal.store.send(shard, name, "manifests/node", command.request, data)),
        )
        self.journal.wait_for(
            "the result", lambda: any(line.entry.cause == command.request for line in self.journal.lines)
        )

    def _kill_server_process(self) -> None:
        state = self.journal.pods[POD].container("server")
        assert state is not None
        os.kill(self.shared.api.inspect_container(state.id)["State"]["Pid"], signal.SIGKILL)

    # -- conditions ------------------------------------------------------------------------------------------------

    def _checkpoint(self, name: str, condition: Any) -> None:
        self.journal.wait_for(name, condition, 40)
        self.statuses[name] = status_lines(self.journal.status(POD))
        self.journal.wait_for("the page", self._served)
        self.journal.wait_for("programs that handle SIGTERM", self._all_handle_term)

    def _running(self, restarts: int) -> bool:
        status = self.journal.status(POD)
        if status is None or not self._all_ready():
            return False
        return {one.name: one.restart_count for one in status.container_statuses} == {"writer": 0, "server": restarts}

    def _changed(self, change: int) -> bool:
        """Return whether the changed containers or sandbox have been recreated."""
        state = self.journal.pods[POD]
        writer = state.container("writer")
        return bool(writer and writer.attempt >= change and state.sandbox.attempt >= change - 1 and self._all_ready())

    def _all_ready(self) -> bool:
        """Return whether all containers are running, their hooks have ended, and init containers are done."""
        status = self.journal.status(POD)
        if status is None or not all(one.state.running and one.ready for one in status.container_statuses):
            return False
        return all(one.ready for one in status.init_container_statuses)

    def _all_handle_term(self) -> bool:
        """Return whether each program has set its trap: before that, it would ignore SIGTERM."""
        return all(_handles_term(one["State"]["Pid"]) for one in self._running_containers())

    def _served(self) -> bool:
        try:
            return self.shared.engine.namespace.http(self.port).body == b"page\n"
        except OSError:
            return False

    def _hooks(self) -> list[str]:
        """Return what the hooks did: the lines that exec hooks wrote, without the part that identifies the container's
        run, and each request once.
        """
        path = self.hooks / "lines"
        lines = path.read_text().splitlines() if path.exists() else []
        assert len(set(lines)) == len(lines), f"a hook ran twice: {lines}"
        return [*sorted(line.rpartition(" ")[0] for line in lines), *self.shared.hook_server.requests(self.node)]

    def _started_at(self) -> dict[str, str]:
        """Return the start time of each running container, by container name."""
        return {one["Name"]: one["State"]["StartedAt"] for one in self._running_containers()}

    def _running_containers(self) -> Sequence[Mapping[str, Any]]:
        """Return Docker's inspect result of each running container."""
        api = self.shared.api
        found = api.containers(filters={"label": f"{labels.NODE}={self.node}"})
        return [api.inspect_container(one["Id"]) for one in found]

    def _all_removed(self) -> bool:
        removed = {event.id for event in self.journal.events(pleg.ContainerRemoved)}
        return removed >= {event.id for event in self.journal.events(pleg.ContainerStarted)}

    def _wait_and_stop(self) -> None:
        """Wait until the kill has happened and one agent hosts everything; then stop that agent and read the rest of
        the log.
        """
        if self.plan.point is not None:
            self.service_manager.wait_for_kill(self.journal)
        self.journal.wait_for("an agent that hosts everything", self._hosted)
        status = self.service_manager.stop()
        assert status == 0, f"the agent's exit status is {status}"
        self.journal.read()

    def _hosted(self) -> bool:
        """Return whether one live process owns every shard; the lease of a dead process may not have expired yet."""
        heads = self._answer(lambda: self.journal.store.heads(HOSTED))
        alive = self._answer(self.journal.store.alive)
        owners = {head.token.partition(":")[2] for head in (heads or {}).values()}
        return (
            len(owners) == 1 and owners <= set(alive or ()) and not proven_dead(self.root / "locks", next(iter(owners)))
        )

    def _answer(self, call: Callable[[], T]) -> T | None:
        """Return the result of `call`, or None while the server cannot be reached."""
        try:
            return call()
        except StoreUnreachable:
            return None

    def _check_nothing_left(self, uid: str) -> None:
        self.journal.wait_for(
            "the removal of all containers, by Docker", lambda: self.shared.docker_events.gone(self.node)
        )
        left = self._containers()
        assert not left, left
        assert not (self.root / "pods" / uid).exists()
        assert POD not in self.journal.pods

    def _containers(self) -> Sequence[Mapping[str, Any]]:
        """Return all containers of this node, in any state."""
        found: Sequence[Mapping[str, Any]] = self.shared.api.containers(
            all=True, filters={"label": f"{labels.NODE}={self.node}"}
        )
        return found


def _handles_term(pid: int) -> bool:
    if not pid:
        return False  # the process is ending
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)
