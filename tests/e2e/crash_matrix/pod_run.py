"""One life of a pod, from its manifest to its last trace, with at most one blow on the way.

Input: a farm, an engine with its witness, a slot (which host port), and the point and victim of the blow. Output:
`Lived`. The pods are those of `pods`.

    agent starts -> the pod is wanted (-> its port is taken, nothing is left of the try -> the port is free)
    -> all run, the page is served (-> the liveness probe fails, the successor runs) -> the server's process is killed
    -> it runs again, and serves -> (long: killed again, CrashLoopBackOff, it runs again)
    -> (a container is changed, then the sandbox) -> the pod is wanted no longer -> nothing is left
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
from chronolet.kernel.ownership.lease import proven_dead
from chronolet.kernel.storage.store import StoreUnreachable
from chronolet.node.kinds import SHARDS
from chronolet.node.settings.table import ALL_ACTORS
from chronolet.ports.runtime import labels
from chronolet_schemas import codec, kernel, manifests, pleg, pod, registry
from chronolet_schemas.envelope import Command
from chronolet_schemas.keys import Shard, shards_of
from tests.e2e.crash_matrix import pods
from tests.e2e.crash_matrix.hook_server import Listener
from tests.e2e.crash_matrix.run_record import Story, creations, of_the_last_try, status_lines, tell
from tests.e2e.fault_injection.agent_farm import AgentJob, Farm
from tests.e2e.fault_injection.faults import Victim
from tests.e2e.fault_injection.points import Point, without_ids
from tests.e2e.fault_injection.service_manager import Keeping
from tests.e2e.journal import Journal
from tests.e2e.witness import Witness
from tests.support.docker import PrivateDocker
from tests.support.redis import PrivateRedis, private_redis

POD = "default/web"
T = TypeVar("T")
HOSTED = [shard for kind in ALL_ACTORS for shard in shards_of(kind, SHARDS[kind])]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to happen. `taken`: the host port is somebody else's at first. `breaks` of what the liveness probe looks
    at. `kills` of the server's process: the second one is waited out for ten seconds. `changes` of
    the pod, which has to be applied for that.

    `source` is how the pod comes and goes: as a file of the folder, or by commands as `apply` and `delete` send them.
    """

    point: Point | None = None
    victim: Victim = "agent"
    kills: int = 1
    source: Literal["file", "apply"] = "file"
    pod: pods.Kind = "web"
    changes: int = 0
    taken: bool = False
    breaks: int = 0


class Lived(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened."""

    plan: Plan
    story: Story
    names: list[str]
    """Points passed, if they were recorded."""
    struck: bool
    deaths: list[int]
    """Exit statuses of agents that died unasked."""
    seconds: float


class Stage:
    """What lives share."""

    def __init__(self, farm: Farm, engine: PrivateDocker, witness: Witness, listener: Listener) -> None:
        self.farm = farm
        self.engine = engine
        self.witness = witness
        self.listener = listener
        self.api = engine.api()


def live(stage: Stage, plan: Plan, node: str, port: int, *, record: bool = False) -> Lived:
    """Live through it all, in a folder and with a redis-server of its own."""
    began = time.monotonic()
    with private_redis() as server:
        one = _Life(stage, server, plan, node, port, record=record)
        with one.going():
            story = one.run()
        return Lived(
            plan=plan,
            story=story,
            names=one.record.read_text().splitlines() if record else [],
            struck=one.keeping.struck,
            deaths=one.keeping.deaths,
            seconds=time.monotonic() - began,
        )


class _Life:
    def __init__(self, stage: Stage, server: PrivateRedis, plan: Plan, node: str, port: int, *, record: bool) -> None:
        self.stage = stage
        self.plan = plan
        self.node = node
        self.port = port
        self.root = server.folder / "agent"
        self.folder = self.root / "manifests"
        self.folder.mkdir(parents=True)
        self.hooks = self.root / "hooks"
        self.hooks.mkdir()
        self._well = self.hooks / pods.WELL
        self.place = pods.Place(port=port, hooks=str(self.hooks), listener=stage.listener.port, node=node)
        self.record = self.root / "points"
        self.journal = Journal(server.url, node)
        self.statuses: dict[str, list[str]] = {}
        self.keeping = Keeping(stage.farm, server, self._job(server, record=record))

    @contextmanager
    def going(self) -> Iterator[None]:
        """Ends what was begun; what a failure is about is shown with the agent's own last words."""
        try:
            yield
        except BaseException as error:
            error.add_note(f"{self.plan} in {self.node}; struck: {self.keeping.struck}\n{self.journal.tail()}")
            error.add_note("agent: " + "\n".join(Path(self.root / "log").read_text().splitlines()[-150:]))
            raise
        finally:
            self.keeping.abandon()
            self.journal.close()

    def run(self) -> Story:
        self._well.touch()
        self._come_in_vain() if self.plan.taken else self._come()
        self._mark("running", lambda: self._running(0))
        before = self._started_at()
        for number in range(1, self.plan.breaks + 1):
            self._break()
            self._mark(f"broken {number}", lambda number=number: self._running(number))
        for kill in range(1, self.plan.kills + 1):
            self._kill_server_process()
            self._mark(f"restarted {kill}", lambda kill=kill: self._running(kill))
        # The others and the sandbox ran all the time, whoever was killed meanwhile.
        self._untouched(before, "server")
        self._change_all()
        self._go()
        ended = self.journal.wait_for_event(pod.PodEnded)
        self.journal.wait_for("what pleg sees of the end", self._all_seen_gone)
        self._come_to_rest()
        self._nothing_is_left(ended.uid)

        created, unheard_of = creations(self.journal.lines)
        assert not unheard_of, unheard_of
        assert created or self.plan.point is not None, "nothing was created ahead of its start"

        def plain(text: str) -> str:
            without_names = without_ids(text.replace(ended.uid, "UID").replace(f"/{self.node}/", "/NODE/"))
            return without_names.replace(f"port={self.port}", "port=PORT").replace(f":{self.port}", ":PORT")

        lives, signals = self.stage.witness.lives(self.node), self.stage.witness.signals(self.node)
        story = tell(self.journal.lines, lives, signals, self.statuses, plain, hooks=self._hooks())
        return of_the_last_try(story) if self.plan.taken else story

    # -- what is done ----------------------------------------------------------------------------------------------

    def _job(self, server: PrivateRedis, *, record: bool) -> AgentJob:
        return AgentJob(
            flags={
                "redis": server.url,
                "root_dir": str(self.root),
                "node": self.node,
                "docker": self.stage.engine.host,
                "cgroup_root": self.stage.engine.cgroup_root(self.node),
                "pod_manifest_path": str(self.folder),
                "port": "0",
            },
            log=str(self.root / "log"),
            record=str(self.record) if record else "",
            point=self.plan.point,
            victim=self.plan.victim,
            redis_pid=server.pid,
            struck=str(self.root / "struck"),
        )

    def _come(self, changes: int = 0) -> None:
        manifest = msgspec.json.encode(pods.manifest(self.plan.pod, self.place, changes))
        if self.plan.source == "apply":
            (document,) = read_documents(manifest, "web.json").pods
            self._command(manifests.ApplyPods(request=f"apply {self.node} {changes}", pods=(document,)))
            return
        unfinished = self.folder / ".web.json"
        unfinished.write_bytes(manifest)
        unfinished.rename(self.folder / "web.json")

    def _come_in_vain(self) -> None:
        """While another holds the host port the sandbox fails, and takes with it all that was created for it."""
        with self.stage.engine.namespace.call(lambda: socket.create_server(("0.0.0.0", self.port))):
            self._come()
            self.journal.wait_for_event(pod.SandboxStartFailed)
            self.journal.wait_for("nothing of the sandbox that failed", lambda: not self._containers())

    def _break(self) -> None:
        """The liveness probe fails, until its container is being stopped for that."""
        already = len(self.journal.events(pod.ContainerStopRequested, reason="LivenessFailed"))
        self._well.unlink()
        self.journal.wait_for(
            "the stop of what failed its probe",
            lambda: len(self.journal.events(pod.ContainerStopRequested, reason="LivenessFailed")) > already,
        )
        self._well.touch()

    def _change_all(self) -> None:
        """First of a container: the others are left alone. Then of the sandbox: everything is made anew."""
        for change in range(1, self.plan.changes + 1):
            before = self._started_at()
            self._come(change)
            self._mark(f"changed {change}", lambda change=change: self._changed(change))
            if change == 1:
                self._untouched(before, "writer")

    def _untouched(self, before: Mapping[str, str], but: str) -> None:
        after = self._started_at()
        assert {name: before[name] for name in before if f"_{but}_" not in name}.items() <= after.items()

    def _go(self) -> None:
        if self.plan.source == "apply":
            self._command(manifests.DeletePods(request=f"delete {self.node}", pods=(POD,)))
        else:
            (self.folder / "web.json").unlink()

    def _command(self, command: Command) -> None:
        """Sent until the server takes it: the request's id keeps it from being carried out twice."""
        shard, name = Shard("manifests"), registry.type_of(type(command))
        data = codec.encode(command)
        self.journal.wait_for_event(kernel.LogStarted)
        self.journal.wait_for(
            f"the server to take {name}",
            lambda: self._answered(
                lambda: self.journal.store.send(shard, name, "manifests/node", command.request, data)
            ),
        )
        self.journal.wait_for(
            "the answer", lambda: any(line.entry.cause == command.request for line in self.journal.lines)
        )

    def _kill_server_process(self) -> None:
        state = self.journal.pods[POD].container("server")
        assert state is not None
        os.kill(self.stage.api.inspect_container(state.id)["State"]["Pid"], signal.SIGKILL)

    # -- what is waited for ----------------------------------------------------------------------------------------

    def _mark(self, name: str, condition: Any) -> None:
        self.journal.wait_for(name, condition, 40)
        self.statuses[name] = status_lines(self.journal.status(POD))
        self.journal.wait_for("the page", self._served)
        self.journal.wait_for("programs that know how to end", self._all_catch)

    def _running(self, restarts: int) -> bool:
        status = self.journal.status(POD)
        if status is None or not self._all_ready():
            return False
        return {one.name: one.restart_count for one in status.container_statuses} == {"writer": 0, "server": restarts}

    def _changed(self, change: int) -> bool:
        """What the change is about is made anew."""
        state = self.journal.pods[POD]
        writer = state.container("writer")
        return bool(writer and writer.attempt >= change and state.sandbox.attempt >= change - 1 and self._all_ready())

    def _all_ready(self) -> bool:
        """All run, and their hooks are over; what is to be done before is done."""
        status = self.journal.status(POD)
        if status is None or not all(one.state.running and one.ready for one in status.container_statuses):
            return False
        return all(one.ready for one in status.init_container_statuses)

    def _all_catch(self) -> bool:
        """Each program has set its trap: told to end before that, it would not hear it."""
        return all(_catches_term(one["State"]["Pid"]) for one in self._that_run())

    def _served(self) -> bool:
        try:
            return self.stage.engine.namespace.http(self.port).body == b"page\n"
        except OSError:
            return False

    def _hooks(self) -> list[str]:
        """What the hooks did: of those that write lines each line, without the run that it names; requests once."""
        path = self.hooks / "lines"
        lines = path.read_text().splitlines() if path.exists() else []
        assert len(set(lines)) == len(lines), f"a hook ran twice: {lines}"
        return [*sorted(line.rpartition(" ")[0] for line in lines), *self.stage.listener.asked(self.node)]

    def _started_at(self) -> dict[str, str]:
        """Name -> when it was started, of each container that runs."""
        return {one["Name"]: one["State"]["StartedAt"] for one in self._that_run()}

    def _that_run(self) -> Sequence[Mapping[str, Any]]:
        """Each container that runs, as Docker has it."""
        api = self.stage.api
        found = api.containers(filters={"label": f"{labels.NODE}={self.node}"})
        return [api.inspect_container(one["Id"]) for one in found]

    def _all_seen_gone(self) -> bool:
        removed = {event.id for event in self.journal.events(pleg.ContainerRemoved)}
        return removed >= {event.id for event in self.journal.events(pleg.ContainerStarted)}

    def _come_to_rest(self) -> None:
        """The blow has fallen, an agent hosts everything, and has read all there is; it ends when it is told to."""
        if self.plan.point is not None:
            self.keeping.await_blow(self.journal)
        self.journal.wait_for("an agent that hosts everything", self._hosted)
        status = self.keeping.stop()
        assert status == 0, f"the agent's exit status is {status}"
        self.journal.read()

    def _hosted(self) -> bool:
        """One living process owns every shard; the lease of a dead one may not have run out yet."""
        heads = self._answered(lambda: self.journal.store.heads(HOSTED))
        alive = self._answered(self.journal.store.alive)
        owners = {head.token.partition(":")[2] for head in (heads or {}).values()}
        return (
            len(owners) == 1 and owners <= set(alive or ()) and not proven_dead(self.root / "locks", next(iter(owners)))
        )

    def _answered(self, call: Callable[[], T]) -> T | None:
        """What the server says, None while it is on its way back."""
        try:
            return call()
        except StoreUnreachable:
            return None

    def _nothing_is_left(self, uid: str) -> None:
        self.journal.wait_for("the witness", lambda: self.stage.witness.gone(self.node))
        left = self._containers()
        assert not left, left
        assert not (self.root / "pods" / uid).exists()
        assert POD not in self.journal.pods

    def _containers(self) -> Sequence[Mapping[str, Any]]:
        """All of this node, in whatever state."""
        found: Sequence[Mapping[str, Any]] = self.stage.api.containers(
            all=True, filters={"label": f"{labels.NODE}={self.node}"}
        )
        return found


def _catches_term(pid: int) -> bool:
    if not pid:
        return False  # it is ending
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)
