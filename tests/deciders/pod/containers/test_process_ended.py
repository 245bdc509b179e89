"""The sandbox of a terminating pod: it is stopped once its processes have ended, before the runtime has cleaned up."""

from __future__ import annotations

from chronolet.pod import signals, wanted
from chronolet_schemas import pod
from tests.deciders.pod.life import POD, Life, container, manifest, running


def process_ended(life: Life, name: str = "app") -> Life:
    return life.answer(f"container/{name}", signals.ProcessEnded, id=f"{name}-0")


def stop_of(life: Life, name: str = "app") -> wanted.StopContainer:
    effect = life.effects[f"container/{name}"]
    assert isinstance(effect, wanted.StopContainer)
    return effect


def test_the_sandbox_is_stopped_while_the_runtime_cleans_up_the_container() -> None:
    life = running().withdraw()
    assert stop_of(life).with_pod
    process_ended(life).then(
        pod.ContainerProcessEnded(pod=POD, uid="u1", container="app", attempt=0, id="app-0"),
        pod.SandboxStopRequested(pod=POD, uid="u1", attempt=0, id="sandbox-0"),
    ).then_kube_events()
    assert set(life.effects) == {"container/app", "sandbox"}, "the exit is not reported yet"
    assert life.stopped().kinds == ["ContainerExited"]
    life.end()
    assert life.state is None


def test_nothing_is_removed_before_the_exit_of_the_container_is_known() -> None:
    life = process_ended(running().withdraw())
    assert life.answer("sandbox", signals.SandboxDown, id="sandbox-0").kinds == ["SandboxExited"]
    assert set(life.effects) == {"container/app"}
    assert life.stopped().kinds == ["ContainerExited", "CleanupRequested"]
    life.answer("pod", signals.CleanedUp)
    assert life.state is None


def test_the_sandbox_waits_for_the_last_process() -> None:
    life = running(container("one"), container("two")).withdraw()
    assert process_ended(life, "one").kinds == ["ContainerProcessEnded"]
    assert process_ended(life, "two").kinds == ["ContainerProcessEnded", "SandboxStopRequested"]


def test_the_sandbox_waits_for_the_exit_of_an_unobserved_process() -> None:
    life = running(container("one"), container("two")).withdraw()
    process_ended(life, "one")
    assert life.stopped("container/two").kinds == ["ContainerExited", "SandboxStopRequested"]


def test_a_stop_refused_after_its_process_ended_is_retried() -> None:
    life = process_ended(running().withdraw())
    life.answer("container/app", signals.StopRefused, message="no")
    assert life.wake().kinds == ["ContainerStopRequested"]
    assert life.stopped().kinds == ["ContainerExited"]
    life.end()
    assert life.state is None


def test_a_failed_pod_stops_its_sandbox_as_early() -> None:
    life = running(active_deadline_seconds=1).wake()
    assert stop_of(life).with_pod
    assert process_ended(life).kinds == ["ContainerProcessEnded", "SandboxStopRequested"]
    assert life.only(pod.SandboxStopRequested).finished
    life.answer("sandbox", signals.SandboxDown, id="sandbox-0")
    life.stopped()
    assert not life.effects


def test_a_container_that_restarts_is_not_watched() -> None:
    life = running().apply(manifest(container(args=("x",))))
    assert not stop_of(life).with_pod
