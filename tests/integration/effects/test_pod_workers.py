"""A pod's workers on a real engine: what they make and answer, and that no death of theirs makes anything twice."""

import signal
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chronolet.adapters.kept_specs import SpecFiles
from chronolet.adapters.processes import HostProcesses
from chronolet.kernel.effects import Fenced
from chronolet.pod import patience, signals, specs, stopping, wanted
from chronolet.ports import labels
from chronolet.ports.processes import NoProcesses, Processes
from chronolet.ports.runtime import ContainerState, Runtime, SandboxSpec
from chronolet_schemas.podspec import (
    ContainerPort,
    EmptyDir,
    EnvVar,
    HostPath,
    ResourceRequirements,
    Volume,
    VolumeMount,
)
from tests.integration.effects.support import (
    DEAF,
    NODE,
    OBEDIENT,
    POD,
    RUN,
    UID,
    Context,
    World,
    cleanup,
    container,
    ensure,
    pod,
    start_container,
    start_sandbox,
    stop_container,
)
from tests.support.docker import PrivateDocker
from tests.support.images import BUSYBOX, PAUSE
from tests.support.scratch import HANG_SECONDS, wait_until

SCRATCH = Volume(name="scratch", empty_dir=EmptyDir())
AT_SCRATCH = VolumeMount(name="scratch", mount_path="/scratch")
HOUR = 3_600_000
"""In milliseconds: whoever waits for so long hangs."""


def now() -> int:
    return time.time_ns() // 1_000_000


def output(world: World, container_id: str) -> bytes:
    pieces = world.runtime.logs(container_id, follow=False, tail=None, since=None, timestamps=False)
    return b"".join(piece for _, piece in pieces)


def started(world: World, *args: str, attempt: int = 0) -> signals.ContainerUp:
    """A container that has said `ready`, with its sandbox."""
    manifest = pod(container(*args))
    sandbox = world.sandbox(manifest)
    up = world.run(start_container(manifest, sandbox.id, attempt=attempt))
    assert isinstance(up, signals.ContainerUp), up
    wait_until(lambda: output(world, up.id) == b"ready\n", "the program's first word")
    return up


# -- starting ------------------------------------------------------------------------------------------------------


def test_an_environment_that_grows_without_end_is_refused_before_it_is_built(world: World) -> None:
    doubling = tuple(EnvVar(name=f"A{number}", value=f"$(A{number - 1})" * 2) for number in range(1, 40))
    manifest = pod(container(env=(EnvVar(name="A0", value="aaaaaaaaaa"), *doubling)))
    answer = world.run(start_container(manifest, "none"))
    assert isinstance(answer, signals.ContainerRefused)
    assert (answer.reason, answer.id) == ("CreateContainerConfigError", "")
    assert answer.message.startswith("env[14]: variable A14 has 163845 bytes once expanded, above 131072")


def test_a_pod_starts_with_its_volume_ports_environment_and_limits(world: World, docker_engine: PrivateDocker) -> None:
    script = "env; pwd; echo $0 > /scratch/index.html; exec httpd -f -p 80 -h /scratch"
    serve = container(
        "-c",
        script,
        "$(COLOUR)",
        env=(EnvVar(name="COLOUR", value="red"), EnvVar(name="MORE", value="$(COLOUR)-ish")),
        working_dir="/tmp",
        ports=(ContainerPort(container_port=80, host_port=8086),),
        resources=ResourceRequirements(limits={"cpu": "250m", "memory": "32Mi"}, requests={"cpu": "100m"}),
        volume_mounts=(AT_SCRATCH,),
    )
    manifest = pod(serve, volumes=(SCRATCH,))
    sandbox = world.sandbox(manifest)
    assert isinstance(sandbox, signals.SandboxUp)
    assert sandbox.ip.count(".") == 3
    up = world.run(start_container(manifest, sandbox.id), Context(cause="77-7"))
    assert isinstance(up, signals.ContainerUp)
    assert (up.subject, up.intent, up.started_at > sandbox.started_at > 0) == ("container/app", "start/0", True)

    wait_until(lambda: _body(docker_engine) == b"red\n", "the page on the host port")
    (kept,), *_ = SpecFiles(world.root).all()
    assert (kept.node, kept.pod, kept.uid, kept.manifest) == (NODE, POD, UID, manifest)
    folder = world.root / "pods" / UID / "volumes" / "emptydir" / "scratch"
    assert (folder / "index.html").read_text() == "red\n"
    assert folder.stat().st_mode & 0o777 == 0o777
    said = {"COLOUR=red", "MORE=red-ish", "/tmp"}
    wait_until(lambda: said <= set(output(world, up.id).decode().splitlines()), f"{said} in the output")

    raw = docker_engine.api().inspect_container(up.id)
    links = world.root / "logs"
    in_folder = links / "pods" / f"default_web_{UID}" / "app" / "0.log"
    assert str(in_folder.readlink()) == raw["LogPath"]
    assert (links / "containers" / f"web_default_app-{up.id}.log").readlink() == in_folder
    assert "COLOUR=red" in in_folder.read_text()
    host = raw["HostConfig"]
    assert raw["Name"] == f"/chrono_app_web_default_{UID}_0"
    assert (host["CpuPeriod"], host["CpuQuota"], host["NanoCpus"], host["CpuShares"]) == (100_000, 25_000, 0, 102)
    assert (host["Memory"], host["MemorySwap"]) == (32 << 20, 32 << 20)
    assert host["LogConfig"] == {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "5"}}
    assert {host["NetworkMode"], host["IpcMode"]} == {f"container:{sandbox.id}"}
    written = raw["Config"]["Labels"]
    assert len(written.pop("chronolet/digest")) == 16
    assert written == {
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": UID,
        "io.kubernetes.container.name": "app",
        "chronolet/node": NODE,
        "chronolet/attempt": "0",
        "chronolet/cause": "77-7",
        "chronolet/run": RUN,
        "chronolet/spec-hash": "h",
    }


def _body(engine: PrivateDocker) -> bytes:
    try:
        return engine.namespace.http(8086).body
    except OSError:
        return b""


def test_a_sandbox_start_killed_at_any_point_is_found_again(world: World) -> None:
    manifest = pod(container(*OBEDIENT))

    def fresh() -> wanted.StartSandbox:
        world.run(cleanup())
        return start_sandbox(manifest)

    def one_runs(answer: Any) -> None:
        assert isinstance(answer, signals.SandboxUp)
        assert [(one.id, one.state) for one in world.ours()] == [(answer.id, "running")]

    assert world.run_through_every_death(fresh, one_runs) == 7


def test_a_container_start_killed_at_any_point_is_found_again(world: World) -> None:
    manifest = pod(container(*OBEDIENT, volume_mounts=(AT_SCRATCH,)), volumes=(SCRATCH,))
    sandbox: list[str] = []

    def fresh() -> wanted.StartContainer:
        world.run(cleanup())
        sandbox[:] = [world.sandbox(manifest).id]
        return start_container(manifest, sandbox[0])

    def one_runs(answer: Any) -> None:
        assert isinstance(answer, signals.ContainerUp)
        assert {one.id: one.state for one in world.ours()} == {sandbox[0]: "running", answer.id: "running"}

    assert world.run_through_every_death(fresh, one_runs) == 10


def test_of_a_pod_that_is_over_starts_are_looked_for_and_none_is_made(world: World) -> None:
    manifest = pod(container(*OBEDIENT))
    at: dict[str, Any] = {"pod": POD, "uid": UID, "attempt": 0, "intent": "find"}
    find_sandbox = wanted.FindSandbox(subject="sandbox", **at)
    find = wanted.FindContainer(subject="container/app", container="app", **at)
    assert isinstance(world.run(find_sandbox), signals.SandboxRefused)
    assert isinstance(world.run(find), signals.ContainerRefused)
    assert world.ours() == []
    sandbox = world.sandbox(manifest)
    assert world.run(find_sandbox).id == sandbox.id
    effect = start_container(manifest, sandbox.id)
    spec = specs.container(effect, manifest.spec.containers[0], specs.Making(node=NODE, cause="1-1"))
    created = world.runtime.create_container(spec)
    assert isinstance(world.run(find), signals.ContainerRefused)
    world.runtime.remove(created)
    running = world.run(effect)
    assert world.run(find) == signals.ContainerUp(
        subject=find.subject, intent="find", id=running.id, started_at=running.started_at
    )
    for one in (running.id, sandbox.id):
        world.runtime.kill(one)
        assert world.runtime.wait(one, HANG_SECONDS)
    assert (world.run(find).id, world.run(find).exit_code) == (running.id, 137)
    assert world.run(find_sandbox).id == sandbox.id


def test_a_program_runs_once_though_its_worker_runs_twice(world: World) -> None:
    manifest = pod(container("-c", "echo x >> /scratch/runs; exit 3", volume_mounts=(AT_SCRATCH,)), volumes=(SCRATCH,))
    runs = world.root / "pods" / UID / "volumes" / "emptydir" / "scratch" / "runs"
    sandbox = world.sandbox(manifest)
    effect = start_container(manifest, sandbox.id)
    first = world.run(effect)
    wait_until(lambda: isinstance(world.run(effect), signals.ContainerDead), "the program's end")
    again = world.run(effect)
    assert (again.id, again.exit_code, again.reason) == (first.id, 3, "Error")
    assert again.finished_at >= again.started_at > 0
    assert runs.read_text() == "x\n"


def test_what_an_earlier_cause_ran_is_the_attempt_and_what_it_never_started_gives_way(world: World) -> None:
    manifest = pod(container(*OBEDIENT))
    sandbox = world.sandbox(manifest)
    effect = start_container(manifest, sandbox.id)
    running = world.run(effect, Context(cause="1-1"))
    assert world.run(effect, Context(cause="2-2")).id == running.id
    world.runtime.kill(running.id)
    assert world.runtime.wait(running.id, HANG_SECONDS)
    dead = world.run(effect, Context(cause="2-2"))
    assert isinstance(dead, signals.ContainerDead)
    assert (dead.id, dead.exit_code) == (running.id, 137)
    world.runtime.remove(running.id)
    spec = specs.container(effect, manifest.spec.containers[0], specs.Making(node=NODE, cause="1-1"))
    never_started = world.runtime.create_container(spec)
    fresh = world.run(effect, Context(cause="2-2"))
    assert isinstance(fresh, signals.ContainerUp)
    assert fresh.id != never_started
    assert world.runtime.inspect(never_started) is None


def test_a_container_of_another_definition_is_not_taken_for_ours(world: World) -> None:
    manifest = pod(container(*OBEDIENT))
    sandbox = world.sandbox(manifest)
    running = world.run(start_container(manifest, sandbox.id), Context(cause="1-1"))
    answer = world.run(start_container(manifest, sandbox.id, spec_hash="other"), Context(cause="2-2"))
    assert isinstance(answer, signals.ContainerRefused)
    assert (answer.reason, answer.id) == ("CreateContainerError", "")
    assert "another definition" in answer.message
    assert world.runtime.inspect(running.id).state == "running"


def test_a_strangers_container_is_left_alone(world: World) -> None:
    name = f"chrono_POD_web_default_{UID}_0"
    stranger = world.runtime.create_sandbox(
        SandboxSpec(name=name, labels={"chronolet/node": "another"}, image=PAUSE.reference, hostname="x")
    )
    answer = world.sandbox(pod(container(*OBEDIENT)))
    assert isinstance(answer, signals.SandboxRefused)
    assert "chronolet/node is 'another', expected 'test-node'" in answer.message
    assert world.runtime.inspect(stranger) is not None


def test_a_missing_command_is_told_in_the_engines_words(world: World) -> None:
    manifest = pod(container(command="/no/such/program"))
    sandbox = world.sandbox(manifest)
    effect = start_container(manifest, sandbox.id)
    answer = world.run(effect)
    assert isinstance(answer, signals.ContainerRefused)
    assert (answer.reason, answer.exit_code) == ("RunContainerError", 127)
    assert answer.message.startswith('failed to start container "app": ')
    assert "no such file or directory" in answer.message
    assert "\n" not in answer.message
    assert world.run(effect) == answer
    assert world.runtime.inspect(answer.id).state == "created"


def test_a_dead_sandbox_refuses_its_containers(world: World) -> None:
    manifest = pod(container(*OBEDIENT))
    sandbox = world.sandbox(manifest)
    world.runtime.kill(sandbox.id)
    assert world.runtime.wait(sandbox.id, HANG_SECONDS)
    answer = world.run(start_container(manifest, sandbox.id))
    assert (answer.reason, answer.id) == ("CreateContainerError", "")
    assert "non running container" in answer.message
    assert len(world.ours()) == 1, "what was made for nothing is gone"
    assert isinstance(world.sandbox(manifest), signals.SandboxDown)


def test_a_taken_port_refuses_the_sandbox_and_leaves_nothing(world: World, docker_engine: PrivateDocker) -> None:
    manifest = pod(container(*OBEDIENT, ports=(ContainerPort(container_port=80, host_port=8087),)))

    def listen() -> socket.socket:
        taken = socket.socket()
        taken.bind(("0.0.0.0", 8087))
        taken.listen()
        return taken

    with docker_engine.namespace.call(listen):
        answer = world.sandbox(manifest)
        assert isinstance(answer, signals.SandboxRefused)
        assert "8087" in answer.message
        assert world.ours() == []
    assert isinstance(world.sandbox(manifest), signals.SandboxUp)


def test_a_missing_pause_image_is_built(world: World, docker_engine: PrivateDocker) -> None:
    api = docker_engine.api()
    api.remove_image(PAUSE.reference, force=True)
    assert isinstance(world.sandbox(pod(container(*OBEDIENT))), signals.SandboxUp)
    assert world.runtime.image(PAUSE.reference) is not None


# -- images --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["IfNotPresent", "Never"])
def test_an_image_that_is_there_is_not_fetched(world: World, policy: str) -> None:
    context = Context()
    answer = world.run(ensure(BUSYBOX.reference, policy), context)
    assert isinstance(answer, signals.ImagePresent)
    assert (answer.pulled, answer.image_id) == (False, world.runtime.image(BUSYBOX.reference).id)
    assert context.sent == []


@pytest.mark.parametrize(
    ("image", "policy", "reason", "words", "tried"),
    [
        ("chronolet/absent:1", "Never", "ErrImageNeverPull", "is not present with pull policy of Never", False),
        ("127.0.0.1:1/absent:1", "IfNotPresent", "ErrImagePull", "connection refused", True),
        ("127.0.0.1:1/absent:1", "Always", "ErrImagePull", "connection refused", True),
        ("Not A Name", "IfNotPresent", "InvalidImageName", "invalid reference format", False),
        ("UPPER/case", "Always", "InvalidImageName", "must be lowercase", False),
    ],
)
def test_an_image_that_cannot_be_had(
    world: World, image: str, policy: str, reason: str, words: str, *, tried: bool
) -> None:
    context = Context()
    answer = world.run(ensure(image, policy), context)
    assert isinstance(answer, signals.ImageRefused)
    assert answer.reason == reason
    assert words in answer.message
    assert [type(signal) for signal, _ in context.sent] == [signals.PullBegan] * tried


# -- stopping ------------------------------------------------------------------------------------------------------


def test_an_obedient_container_ends_with_its_own_code(world: World) -> None:
    up = started(world, *OBEDIENT)
    answer = world.run(stop_container(up.id, grace=3600, deadline=now() + HOUR))
    assert isinstance(answer, signals.ContainerDead)
    assert (answer.id, answer.exit_code, answer.reason, answer.started_at) == (up.id, 4, "Error", up.started_at)
    assert answer.finished_at >= up.started_at


@pytest.mark.parametrize("known", [True, False])
def test_the_end_of_a_process_is_told_before_its_container_is_dead(world: World, known: bool) -> None:
    up = started(world, *OBEDIENT)
    if not known:
        world = World(world.runtime, world.root)  # another agent, which has not started it
    context = Context()
    answer = world.run(stop_container(up.id, grace=3600, deadline=now() + HOUR, with_pod=True), context)
    assert (answer.exit_code, answer.reason) == (4, "Error")
    assert [signal for signal, _ in context.sent] == [
        signals.ProcessEnded(subject="container/app", intent="stop/0", id=up.id)
    ]


def test_of_a_container_that_goes_without_its_pod_nothing_is_told_early(world: World) -> None:
    context = Context()
    world.run(stop_container(started(world, *OBEDIENT).id, grace=3600, deadline=now() + HOUR), context)
    assert context.sent == []


def test_a_deaf_container_is_killed_at_its_deadline(world: World) -> None:
    up = started(world, *DEAF)
    began = now()
    # The grace is over but for 2.5 s: what is left counts, not the whole, which is an hour.
    answer = world.run(stop_container(up.id, grace=3600, deadline=began + 2500))
    assert (answer.exit_code, answer.reason) == (137, "Error")
    assert 2400 <= answer.finished_at - began < HOUR


def test_who_comes_after_the_deadline_asks_before_he_kills(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one before him may have been killed before he could ask."""
    with monkeypatch.context() as patient:
        patient.setattr(stopping, "MINIMUM_GRACE_SECONDS", HANG_SECONDS)  # an obedient one may take its time
        obedient = started(world, *OBEDIENT)
        assert world.run(stop_container(obedient.id, grace=3600, deadline=now() - 60_000)).exit_code == 4
    world.run(cleanup())
    deaf = started(world, *DEAF)
    began = now()
    assert world.run(stop_container(deaf.id, grace=3600, deadline=began - 60_000)).exit_code == 137
    assert 1900 <= now() - began < HOUR


def test_with_no_grace_at_all_nobody_is_asked(world: World) -> None:
    up = started(world, *OBEDIENT)
    assert world.run(stop_container(up.id, grace=0, deadline=now())).exit_code == 137


def test_a_deadline_in_the_far_future_of_a_jumped_clock_is_cut_to_the_grace(world: World) -> None:
    up = started(world, *DEAF)
    began = now()
    answer = world.run(stop_container(up.id, grace=1, deadline=began + HOUR))
    assert answer.exit_code == 137
    assert answer.finished_at - began < HOUR


def test_a_stop_that_is_no_longer_wanted_ends_in_the_middle_of_its_grace(world: World) -> None:
    up = started(world, *DEAF)
    context = Context()
    ended: list[Exception] = []

    def stop() -> None:
        try:
            world.run(stop_container(up.id, grace=600, deadline=now() + 600_000), context)
        except Fenced as fenced:
            ended.append(fenced)

    thread = threading.Thread(target=stop)
    thread.start()
    wait_until(lambda: "before docker.wait" in context.points, "the wait")
    context.cancelled.set()
    thread.join(HANG_SECONDS)
    assert len(ended) == 1
    assert world.runtime.inspect(up.id).state == "running"


def test_a_stop_killed_at_any_point_ends_alike(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "MINIMUM_GRACE_SECONDS", 0.2)

    def fresh() -> wanted.StopContainer:
        world.run(cleanup())
        return stop_container(started(world, *DEAF).id, grace=30, deadline=now() + 200)

    def dead(answer: Any) -> None:
        assert isinstance(answer, signals.ContainerDead)
        assert (answer.exit_code, answer.reason) == (137, "Error")

    assert world.run_through_every_death(fresh, dead) >= 7


def test_what_is_not_there_is_dead_for_unknown_reasons(world: World) -> None:
    answer = world.run(stop_container("0" * 64, grace=1, deadline=now()))
    assert (answer.exit_code, answer.reason, answer.id) == (137, "ContainerStatusUnknown", "0" * 64)


class SignalledRuntime:
    """A runtime, and the signals that it was asked to send."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.signals: list[str] = []

    def kill(self, container_id: str, signal: str) -> None:
        self.signals.append(signal)
        self._runtime.kill(container_id, signal)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)


def test_a_sandbox_stops(world: World) -> None:
    sandbox = world.sandbox(pod(container(*OBEDIENT)))
    at: dict[str, Any] = {"pod": POD, "uid": UID, "attempt": 0, "id": sandbox.id}
    stop = wanted.StopSandbox(subject="sandbox", intent="stop/0", grace_period_seconds=3600, **at)
    answer = world.run(stop)
    assert isinstance(answer, signals.SandboxDown)
    assert (answer.id, answer.exit_code, answer.finished_at > sandbox.started_at) == (sandbox.id, 0, True)
    assert world.run(stop) == answer


def handles_term(running: ContainerState) -> bool:
    """Whether the container's process has begun its program, and this has a handler for SIGTERM."""
    proc = Path(f"/proc/{running.pid}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    begun = (proc / "cmdline").read_text().split("\0")[:-1] == list(running.command)
    return begun and bool(int(status["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize(("processes", "asked"), [(HostProcesses(), []), (NoProcesses(), ["TERM"])])
def test_a_sandbox_gets_its_signal_from_the_kernel_where_its_process_is_seen(
    world: World, processes: Processes, asked: list[str]
) -> None:
    runtime = SignalledRuntime(world.runtime)
    seeing = replace(world, runtime=runtime, processes=processes)
    sandbox = seeing.sandbox(pod(container(*OBEDIENT)))
    running = runtime.inspect(sandbox.id)
    wait_until(lambda: running is not None and handles_term(running), "the handler of the sandbox's process")
    at: dict[str, Any] = {"pod": POD, "uid": UID, "attempt": 0, "id": sandbox.id}
    stop = wanted.StopSandbox(subject="sandbox", intent="stop/0", grace_period_seconds=3600, **at)
    context = Context()
    answer = seeing.run(stop, context)
    assert (answer.id, answer.exit_code) == (sandbox.id, 0)
    assert runtime.signals == asked
    assert context.points.count("before docker.kill") == 1


# -- the end -------------------------------------------------------------------------------------------------------


def test_a_cleanup_killed_at_any_point_leaves_nothing(world: World) -> None:
    manifest = pod(container(*OBEDIENT, volume_mounts=(AT_SCRATCH,)), volumes=(SCRATCH,))

    def fresh() -> wanted.Cleanup:
        sandbox = world.sandbox(manifest)
        assert isinstance(world.run(start_container(manifest, sandbox.id)), signals.ContainerUp)
        return cleanup()

    def nothing_left(answer: Any) -> None:
        assert isinstance(answer, signals.CleanedUp)
        assert world.ours() == []
        assert not (world.root / "pods" / UID).exists()
        assert [one for one in (world.root / "logs").rglob("*") if one.is_symlink() or UID in one.name] == []

    assert world.run_through_every_death(fresh, nothing_left) == 7


def test_a_cleanup_touches_no_other_life_and_no_other_node(world: World) -> None:
    others = [
        world.runtime.create_sandbox(SandboxSpec(name=name, labels=written, image=PAUSE.reference, hostname="x"))
        for name, written in (
            ("other-uid", labels.of_uid(NODE, "another")),
            ("other-node", labels.of_uid("another", UID)),
        )
    ]
    assert isinstance(world.run(cleanup()), signals.CleanedUp)
    assert all(world.runtime.inspect(other) for other in others)


def test_a_hostile_volume_is_removed_without_leaving_it(world: World, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    script = (
        f"cd /scratch; ln -s {precious} link; ln -s / root; mkdir -p a/b; ln -s {precious} a/b/link;"
        "mkdir -p .removed-0/full; ln -s .. .removed-1; touch .removed-2;"
        # Deeper than a recursion may go or a process may hold files open.
        'i=0; while [ $i -lt 1500 ]; do mkdir d; cd d; i=$((i+1)); done; touch end; echo "ready"'
    )
    manifest = pod(container("-c", script, volume_mounts=(AT_SCRATCH,)), volumes=(SCRATCH,))
    sandbox = world.sandbox(manifest)
    answer = world.run(start_container(manifest, sandbox.id))
    assert world.runtime.wait(answer.id, HANG_SECONDS)
    assert output(world, answer.id) == b"ready\n"
    assert isinstance(world.run(cleanup()), signals.CleanedUp)
    assert not (world.root / "pods" / UID).exists()
    assert (precious / "file").read_text() == "kept"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("Directory", "is not a directory"),
        ("File", "is not a file"),
        ("FileOrCreate", "thing: No such file or directory"),
    ],
)
def test_a_host_path_that_is_not_what_was_expected(world: World, kind: Any, reason: str) -> None:
    path = world.root / "missing" / "thing"
    volume = Volume(name="host", host_path=HostPath(path=str(path), type=kind))
    manifest = pod(container(*OBEDIENT), volumes=(volume,))
    answer = world.run(start_container(manifest, "0" * 64))
    assert isinstance(answer, signals.ContainerRefused)
    assert (answer.reason, answer.id) == ("FailedMount", "")
    assert answer.message.startswith('MountVolume.SetUp failed for volume "host" : ')
    assert reason in answer.message
    assert not path.exists()


def test_a_read_only_host_path_is_seen_and_not_written(world: World, tmp_path: Path) -> None:
    path = tmp_path / "made" / "here"
    volume = Volume(name="host", host_path=HostPath(path=str(path), type="DirectoryOrCreate"))
    script = "ls /host; touch /host/x || echo refused"
    mount = VolumeMount(name="host", mount_path="/host", read_only=True)
    manifest = pod(container("-c", script, volume_mounts=(mount,)), volumes=(volume,))
    answer = world.run(start_container(manifest, world.sandbox(manifest).id))
    assert world.runtime.wait(answer.id, HANG_SECONDS)
    assert b"refused" in output(world, answer.id)
    assert list(path.iterdir()) == []
    assert isinstance(world.run(cleanup()), signals.CleanedUp)
    assert path.is_dir()


# -- an engine that dies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["before docker.create", "after docker.create", "before docker.start"])
def test_a_start_goes_on_when_the_engine_is_back(
    world: World, docker_engine: PrivateDocker, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", HANG_SECONDS)
    manifest = pod(container(*OBEDIENT))
    for effect in (start_sandbox(manifest), None):
        wanted_now = effect or start_container(manifest, world.sandbox(manifest).id)
        back = threading.Thread(target=docker_engine.start)

        def killed(back: threading.Thread = back) -> None:
            if back.ident is None:
                docker_engine.kill9()
                back.start()

        answer = world.run(wanted_now, Context(at={point: killed}))
        back.join()
        assert isinstance(answer, signals.SandboxUp if effect else signals.ContainerUp), answer
    assert [one.state for one in world.ours()] == ["running", "running"]


def test_an_engine_killed_in_the_middle_leaves_one_container_after_all(
    world: World, docker_engine: PrivateDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0.5)
    manifest = pod(container(*OBEDIENT))
    sandbox = world.sandbox(manifest)
    effect = start_container(manifest, sandbox.id)
    context = Context(cause="1-1", at={"after docker.create": docker_engine.kill9})
    try:
        refused = world.run(effect, context)
    finally:
        docker_engine.start()
    assert isinstance(refused, signals.ContainerRefused)
    assert (refused.reason, refused.id) == ("RunContainerError", ""), "the same attempt again"
    answer = world.run(effect, Context(cause="2-2"))
    assert isinstance(answer, signals.ContainerUp)
    assert {one.id: one.state for one in world.ours()} == {sandbox.id: "running", answer.id: "running"}


def test_an_engine_killed_while_it_stops_a_container(world: World, docker_engine: PrivateDocker) -> None:
    up = started(world, *OBEDIENT)
    context = Context(at={"before docker.kill": docker_engine.kill9})
    try:
        refused = world.run(stop_container(up.id, grace=3600, deadline=now() + HOUR), context)
    finally:
        docker_engine.start()
    assert isinstance(refused, signals.StopRefused)
    assert "nobody listens" in refused.message
    answer = world.run(stop_container(up.id, grace=3600, deadline=now() + HOUR))
    assert (answer.id, answer.exit_code) == (up.id, 4)
