"""Starts of sandboxes and containers on a real engine. A worker that is killed at any point creates nothing twice."""

import socket
import threading
from typing import Any

import pytest

from chronolet.adapters.state_folder.specs import SpecFiles
from chronolet.pod import signals, wanted
from chronolet.pod.specs import specs
from chronolet.ports.runtime.runtime import SandboxSpec
from chronolet_schemas.podspec import (
    ContainerPort,
    EnvVar,
    ResourceRequirements,
)
from tests.integration.effects.pod.support import AT_SCRATCH, SCRATCH, output
from tests.integration.effects.support import (
    NODE,
    OBEDIENT,
    POD,
    RUN,
    UID,
    Context,
    World,
    cleanup,
    container,
    pod,
    start_container,
    start_sandbox,
)
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.images import PAUSE
from tests.support.scratch import HANG_SECONDS, wait_until


def test_an_environment_above_the_size_limit_is_refused_before_it_is_expanded(world: World) -> None:
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
    expected = {"COLOUR=red", "MORE=red-ish", "/tmp"}
    wait_until(lambda: expected <= set(output(world, up.id).decode().splitlines()), f"{expected} in the output")

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


def test_a_sandbox_start_killed_at_any_point_is_completed_by_the_next(world: World) -> None:
    manifest = pod(container(*OBEDIENT))

    def fresh() -> wanted.StartSandbox:
        world.run(cleanup())
        return start_sandbox(manifest)

    def one_runs(answer: Any) -> None:
        assert isinstance(answer, signals.SandboxUp)
        assert [(one.id, one.state) for one in world.ours()] == [(answer.id, "running")]

    assert world.run_through_every_death(fresh, one_runs) == 7


def test_a_container_start_killed_at_any_point_is_completed_by_the_next(world: World) -> None:
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


def test_a_lookup_finds_started_containers_and_starts_none(world: World) -> None:
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
    spec = specs.container(effect, manifest.spec.containers[0], specs.SpecInputs(node=NODE, cause="1-1"))
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


def test_a_program_runs_once_if_its_worker_runs_twice(world: World) -> None:
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


def test_a_container_of_an_earlier_request_is_reused_if_it_ran_and_replaced_if_not(world: World) -> None:
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
    spec = specs.container(effect, manifest.spec.containers[0], specs.SpecInputs(node=NODE, cause="1-1"))
    never_started = world.runtime.create_container(spec)
    fresh = world.run(effect, Context(cause="2-2"))
    assert isinstance(fresh, signals.ContainerUp)
    assert fresh.id != never_started
    assert world.runtime.inspect(never_started) is None


def test_a_container_of_another_definition_is_not_reused(world: World) -> None:
    manifest = pod(container(*OBEDIENT))
    sandbox = world.sandbox(manifest)
    running = world.run(start_container(manifest, sandbox.id), Context(cause="1-1"))
    answer = world.run(start_container(manifest, sandbox.id, spec_hash="other"), Context(cause="2-2"))
    assert isinstance(answer, signals.ContainerRefused)
    assert (answer.reason, answer.id) == ("CreateContainerError", "")
    assert "another definition" in answer.message
    assert world.runtime.inspect(running.id).state == "running"


def test_a_container_of_another_node_is_not_touched(world: World) -> None:
    name = f"chrono_POD_web_default_{UID}_0"
    stranger = world.runtime.create_sandbox(
        SandboxSpec(name=name, labels={"chronolet/node": "another"}, image=PAUSE.reference, hostname="x")
    )
    answer = world.sandbox(pod(container(*OBEDIENT)))
    assert isinstance(answer, signals.SandboxRefused)
    assert "chronolet/node is 'another', expected 'test-node'" in answer.message
    assert world.runtime.inspect(stranger) is not None


def test_a_missing_command_is_reported_with_the_engines_message(world: World) -> None:
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


def test_a_start_in_a_dead_sandbox_is_refused(world: World) -> None:
    manifest = pod(container(*OBEDIENT))
    sandbox = world.sandbox(manifest)
    world.runtime.kill(sandbox.id)
    assert world.runtime.wait(sandbox.id, HANG_SECONDS)
    answer = world.run(start_container(manifest, sandbox.id))
    assert (answer.reason, answer.id) == ("CreateContainerError", "")
    assert "non running container" in answer.message
    assert len(world.ours()) == 1, "the container was removed again"
    assert isinstance(world.sandbox(manifest), signals.SandboxDown)


def test_a_sandbox_whose_port_is_in_use_is_refused_and_removed(world: World, docker_engine: PrivateDocker) -> None:
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


@pytest.mark.parametrize("point", ["before docker.create", "after docker.create", "before docker.start"])
def test_a_start_continues_after_a_crash_of_the_engine(world: World, docker_engine: PrivateDocker, point: str) -> None:
    world = world.with_timing(restart_patience_seconds=HANG_SECONDS)
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


def test_a_start_that_gives_up_on_a_crashed_engine_leaves_one_container(
    world: World, docker_engine: PrivateDocker
) -> None:
    world = world.with_timing(restart_patience_seconds=0.5)
    manifest = pod(container(*OBEDIENT))
    sandbox = world.sandbox(manifest)
    effect = start_container(manifest, sandbox.id)
    context = Context(cause="1-1", at={"after docker.create": docker_engine.kill9})
    try:
        refused = world.run(effect, context)
    finally:
        docker_engine.start()
    assert isinstance(refused, signals.ContainerRefused)
    assert (refused.reason, refused.id) == ("RunContainerError", ""), "the same attempt is retried"
    answer = world.run(effect, Context(cause="2-2"))
    assert isinstance(answer, signals.ContainerUp)
    assert {one.id: one.state for one in world.ours()} == {sandbox.id: "running", answer.id: "running"}
