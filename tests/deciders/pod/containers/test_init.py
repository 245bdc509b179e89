"""Init containers in order, sidecars that keep running, ephemeral containers; initialisation in a new sandbox."""

from __future__ import annotations

import pytest

from chronolet.cli.get.pod_rows import summarized
from chronolet.pod import signals
from chronolet.pod.state import Container
from chronolet.pod.status.status import plain_status
from chronolet_schemas import podspec
from chronolet_schemas.podspec import EphemeralContainer, Pod
from tests.deciders.pod.life import Life, container, manifest


def sidecar(name: str = "proxy", **fields: object) -> podspec.Container:
    return container(name, restart_policy="Always", **fields)


def begun(*init: podspec.Container, **spec: object) -> Life:
    """Return a pod with these init containers and `app`, whose sandbox is running."""
    return Life().apply(manifest(init_containers=init, **spec)).sandbox_up()


def phases(life: Life) -> dict[str, str]:
    return {one.name: one.phase for one in life.state.containers}


def shown(life: Life) -> str:
    """Return READY and STATUS as kubectl prints them."""
    plain: Pod = podspec.plain(life.state.manifest)  # type: ignore[assignment]
    summary = summarized({**plain, "status": plain_status(life.state)})  # type: ignore[dict-item]
    return f"{summary.ready}/{summary.total} {summary.status}"


def test_init_containers_run_one_after_the_other_and_then_the_apps() -> None:
    life = begun(container("one"), container("two"))
    assert phases(life) == {"one": "pulling", "two": "waiting", "app": "waiting"}
    assert shown(life) == "0/1 Init:0/2"
    life.start("one")
    assert phases(life) == {"one": "running", "two": "waiting", "app": "waiting"}
    life.dies("one", 0, reason="Completed")
    assert phases(life) == {"one": "exited", "two": "pulling", "app": "waiting"}
    assert shown(life) == "0/1 Init:1/2"
    life.start("two").dies("two", 0, reason="Completed")
    assert phases(life) == {"one": "exited", "two": "exited", "app": "pulling"}
    assert shown(life) == "0/1 PodInitializing"
    assert shown(life.start("app")) == "1/1 Running"
    status = plain_status(life.state)
    assert [(one["name"], one["ready"], one["started"]) for one in status["initContainerStatuses"]] == [
        ("one", True, False),
        ("two", True, False),
    ]
    assert next(one for one in status["conditions"] if one["type"] == "Initialized")["status"] == "True"


def test_kube_events_of_an_init_container_name_its_field() -> None:
    life = begun(container("one")).image_there("one")
    assert life.recorded[0].field_path == "spec.initContainers{one}"


def initialized(life: Life) -> str:
    conditions = plain_status(life.state)["conditions"]
    return str(next(one["status"] for one in conditions if one["type"] == "Initialized"))


def test_a_restarted_sidecar_does_not_undo_the_initialisation() -> None:
    life = begun(sidecar()).start("proxy")
    assert (initialized(life), shown(life)) == ("True", "1/2 PodInitializing")
    life.dies("proxy")
    assert initialized(life) == "False"
    life.start("proxy").start("app").dies("proxy")
    assert (initialized(life), shown(life)) == ("True", "1/2 Init:CrashLoopBackOff")
    # The app is also dead, and waits; then the sandbox dies, and initialisation starts over.
    life.dies("app").start("app").dies("app")
    assert initialized(life) == "True"
    life.sandbox_dies(after=1000)
    assert initialized(life) == "True"
    life.at += 60_000
    life.wake()
    assert initialized(life) == "False"
    assert initialized(life.sandbox_up()) == "False"


def test_a_failed_init_container_backs_off() -> None:
    life = begun(container("one")).start("one").dies("one")
    assert phases(life)["one"] == "pulling"
    assert shown(life) == "0/1 Init:Error"
    life.start("one").dies("one")
    assert phases(life) == {"one": "backing_off", "app": "waiting"}
    assert shown(life) == "0/1 Init:CrashLoopBackOff"
    assert plain_status(life.state)["phase"] == "Pending"
    assert life.wake().start("one").state.container("one").restarts == 2


def test_a_failed_init_container_fails_the_pod_under_policy_never() -> None:
    life = begun(container("one"), restart_policy="Never").start("one").dies("one")
    assert life.kinds == ["ContainerExited", "SandboxStopRequested"]
    assert life.answer("sandbox", signals.SandboxDown, id="sandbox-0").kinds == ["SandboxExited"]
    assert (life.effects, life.due) == ({}, None)
    assert plain_status(life.state)["phase"] == "Failed"
    assert shown(life) == "0/1 Init:Error"


def test_the_next_container_does_not_wait_for_the_end_of_a_sidecar() -> None:
    life = begun(sidecar(), container("one"))
    life.image_there("proxy")
    assert phases(life) == {"proxy": "starting", "one": "pulling", "app": "waiting"}
    life.image_there("one")
    assert phases(life)["one"] == "image_ready"
    assert phases(life.up("proxy"))["one"] == "starting"
    life.up("one")
    assert shown(life) == "1/2 Init:1/2"
    life.dies("one", 0, reason="Completed").start("app")
    assert shown(life) == "2/2 Running"
    assert plain_status(life.state)["phase"] == "Running"


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always"])
def test_a_sidecar_restarts_under_any_policy(policy: str) -> None:
    life = begun(sidecar(), restart_policy=policy).start("proxy").start("app").dies("proxy", 0)
    assert phases(life) == {"proxy": "pulling", "app": "running"}
    assert life.start("proxy").state.container("proxy").restarts == 1


def test_a_pod_whose_work_is_done_stops_its_sidecars() -> None:
    life = begun(sidecar(), restart_policy="OnFailure").start("proxy").start("app").dies("app", 0, reason="Completed")
    assert life.kinds == ["ContainerExited", "ContainerStopRequested"]
    assert life.state.container("proxy").stop.reason == "PodCompleted"
    assert plain_status(life.state)["phase"] == "Running"
    life.stopped("container/proxy", 137).answer("sandbox", signals.SandboxDown, id="sandbox-0")
    assert (life.effects, life.due) == ({}, None)
    assert plain_status(life.state)["phase"] == "Succeeded"
    assert shown(life) == "0/2 Completed"


def test_a_changed_sidecar_is_replaced_in_place() -> None:
    life = begun(sidecar()).start("proxy").start("app")
    life.apply(manifest(init_containers=(sidecar(args=("x",)),)))
    assert phases(life) == {"proxy": "stopping", "app": "running"}
    life.stopped("container/proxy")
    assert phases(life) == {"proxy": "pulling", "app": "running"}


def test_a_new_sandbox_starts_with_the_first_init_container() -> None:
    life = begun(container("one"), sidecar(), restart_policy="OnFailure")
    life.start("one").dies("one", 0, reason="Completed").start("proxy").start("app").sandbox_dies()
    life.stopped("container/app", 137).stopped("container/proxy").sandbox_up()
    assert phases(life) == {"one": "pulling", "proxy": "exited", "app": "exited"}
    assert shown(life) == "0/2 Init:0/2"
    life.start("one").dies("one", 0, reason="Completed").start("proxy").start("app")
    assert phases(life) == {"one": "exited", "proxy": "running", "app": "running"}
    assert [one.restarts for one in life.state.containers] == [1, 1, 1]


def ephemeral(name: str = "debug") -> EphemeralContainer:
    return EphemeralContainer(name=name, image="busybox:1")


def test_an_ephemeral_container_is_started_once() -> None:
    life = begun(container("one")).image_there("one")
    life.apply(manifest(init_containers=(container("one"),), ephemeral_containers=(ephemeral(),)))
    life.image_there("debug")
    assert phases(life) == {"one": "starting", "app": "waiting", "debug": "starting"}
    assert life.recorded[0].field_path == "spec.ephemeralContainers{debug}"
    life.up("debug").up("one").dies("debug", 0)
    assert phases(life) == {"one": "running", "app": "waiting", "debug": "exited"}
    assert (life.kinds, life.due) == (["ContainerExited"], None)
    status = plain_status(life.state)["ephemeralContainerStatuses"][0]
    assert (status["ready"], status["state"]["terminated"]["exitCode"]) == (False, 0)


def test_an_ephemeral_container_does_not_keep_a_pod_running() -> None:
    life = begun(ephemeral_containers=(ephemeral(),), restart_policy="Never").start("app").start("debug")
    life.dies("app", 0, reason="Completed")
    assert phases(life) == {"app": "exited", "debug": "stopping"}


def test_containers_are_kept_by_name_in_the_order_of_their_start() -> None:
    life = begun(container("one"), sidecar(), ephemeral_containers=(ephemeral(),))
    known: tuple[Container, ...] = life.state.containers
    assert [(one.name, one.kind) for one in known] == [
        ("one", "init"),
        ("proxy", "sidecar"),
        ("app", "app"),
        ("debug", "ephemeral"),
    ]
