"""Redis is emptied under thirty running pods, and then its folder is deleted: nothing that is running is touched, and
later deaths are handled as usual.
"""

import shutil
from collections.abc import Mapping
from typing import Any

import msgspec

from chronolet_schemas import manifests
from chronolet_schemas import pod as pods
from tests.e2e.back_off import crash, in_back_off
from tests.e2e.docker_events import DockerEvents
from tests.e2e.node import Node, pod, shell
from tests.e2e.recovery.lost_log import all_ids, wait_for_new_log
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import PrivateRedis

APPLIED = [f"applied-{number}" for number in range(14)]
OF_FILES = [f"filed-{number}" for number in range(12)]
LOOPING = [f"looping-{number}" for number in range(4)]
STEADY = [*APPLIED, *OF_FILES]
WITH_HOOKS = APPLIED[-2:]
"""Applied pods whose container has hooks; each hook writes a line."""
WITH_SIDECAR = OF_FILES[-4:]
"""Pods from files, with a completed init container and a running sidecar."""


class Before(msgspec.Struct, frozen=True):
    """State of the pods when the log is lost. `started`: start times by container id. `actions`, `signals`: from
    Docker's events.
    """

    uids: Mapping[str, str]
    started: Mapping[str, str]
    restarts: Mapping[str, int]
    actions: Mapping[str, list[str]]
    signals: set[str]


def thirty_pods(node: Node) -> None:
    """Start applied pods, pods from files, and pods that keep failing; wait until two of those from files have reached
    their third attempt.
    """
    node.start()
    node.journal.wait_for("the log", lambda: node.journal.lines)
    for name in OF_FILES:
        inits = [shell("prepare", "exit 0"), shell("side", restartPolicy="Always")] if name in WITH_SIDECAR else []
        node.write(f"{name}.yaml", pod(name, shell("app"), shell("other"), initContainers=inits))
    for name in LOOPING:
        node.write(f"{name}.yaml", pod(name, shell("app", "exit 3"), shell("other")))
    documents = [pod_with_hooks(node, name) if name in WITH_HOOKS else pod(name) for name in APPLIED]
    assert node.chronolet("apply", "-f", node.write_unwatched("applied.yaml", *documents)).status == 0
    node.wait_until_running(*STEADY)
    for attempt in (1, 2):
        for name in OF_FILES[:2]:
            node.kill_process(name, "app")
        for name in OF_FILES[:2]:
            node.journal.wait_for_event(pods.ContainerStarted, pod=f"default/{name}", container="app", attempt=attempt)
    for name in WITH_HOOKS:
        node.journal.wait_for_event(pods.HookEnded, pod=f"default/{name}", hook="PostStart", outcome="Succeeded")
    for name in LOOPING:
        node.journal.wait_for_event(pods.ContainerStarted, pod=f"default/{name}", container="other")
        # The next back-off takes this long; a slow agent may have noticed this death only after the wait had ended.
        node.journal.wait_for_event(pods.RestartScheduled, pod=f"default/{name}", attempt=1, next_back_off_seconds=20)


def pod_with_hooks(node: Node, name: str) -> dict[str, Any]:
    """Return a pod whose hooks write to a file on the host."""
    (node.root / "hooks").mkdir(exist_ok=True)
    lifecycle = {
        hook: {"exec": {"command": ["/bin/sh", "-c", f"echo {hook} >> /hooks/{name}"]}}
        for hook in ("postStart", "preStop")
    }
    app = shell("app", lifecycle=lifecycle, volumeMounts=[{"name": "hooks", "mountPath": "/hooks"}])
    volumes = [{"name": "hooks", "hostPath": {"path": str(node.root / "hooks")}}]
    return pod(name, app, volumes=volumes, terminationGracePeriodSeconds=600)  # longer than any hook takes


def hooks(node: Node, name: str) -> list[str]:
    """Return the hooks that ran."""
    return (node.root / "hooks" / name).read_text().split()


def current_state(node: Node, docker_events: DockerEvents) -> Before:
    """Return the current state of the pods."""
    node.wait_until_running(*STEADY)
    node.journal.wait_for("Docker's start events of all containers", lambda: has_seen_all(node, docker_events))
    return Before(
        uids={name: state.uid for name, state in node.journal.pods.items()},
        started=started(node),
        restarts={name: restarts(node, name) for name in (*STEADY, *LOOPING)},
        actions=actions(node, docker_events),
        signals=docker_events.signals(node.name),
    )


def started(node: Node) -> dict[str, str]:
    """Return Docker's start time by container id, for all containers that do not keep failing."""
    return {one["Id"]: one["State"]["StartedAt"] for one in lasting(node)}


def lasting(node: Node) -> list[dict[str, Any]]:
    """Return the running containers, except those that keep failing and may happen to be running."""
    there = [(name in LOOPING, node.running(name)) for name in (*STEADY, *LOOPING)]
    return [one for fails, found in there for name, one in found.items() if not (fails and name == "app")]


def has_seen_all(node: Node, docker_events: DockerEvents) -> bool:
    """Return whether the start of each container has arrived in `docker_events`."""
    seen = docker_events.actions(node.name)
    return all(seen.get(one["Name"].removeprefix("/"), [""])[-1] == "start" for one in lasting(node))


def restarts(node: Node, name: str) -> int:
    """Return the restart count of the container `app`."""
    status = node.journal.status(f"default/{name}")
    assert status is not None
    (count,) = (one.restart_count for one in status.container_statuses if one.name == "app")
    return int(count or 0)


def actions(node: Node, docker_events: DockerEvents) -> dict[str, list[str]]:
    """Return Docker's actions by container, for all containers that do not keep failing. The collector may remove dead
    ones, so a final removal of a dead container is omitted.
    """
    return {
        name: actions[:-1] if len(actions) > 1 and dead_and_gone(*actions[-2:]) else actions
        for name, actions in docker_events.actions(node.name).items()
        if not name.startswith("chrono_app_looping")
    }


def dead_and_gone(before: str, last: str) -> bool:
    """Return whether these last two actions of a container are its death and its removal."""
    return before.startswith("die") and last == "destroy"


def check(node: Node, docker_events: DockerEvents, before: Before) -> None:
    """Check that all thirty pods are unchanged, nothing was touched, and failing pods continue to fail."""
    journal = node.journal
    assert {one.pod: one.uid for one in journal.events(manifests.PodAdopted)} == before.uids
    assert [one.left_alone for one in journal.events(manifests.AdoptionFinished)] == [()]
    node.wait_until_running(*STEADY)
    assert {name: restarts(node, name) for name in STEADY} == {name: before.restarts[name] for name in STEADY}
    for name in LOOPING:
        wait_for_failure(node, name, before.restarts[name])
    assert actions(node, docker_events) == before.actions
    assert docker_events.signals(node.name) == before.signals
    assert started(node).items() >= before.started.items()
    assert not journal.events(pods.StrayFound)
    assert [hooks(node, name) for name in WITH_HOOKS] == [["postStart"], ["postStart"]]
    assert not journal.events(pods.SandboxStartRequested)
    shown = node.chronolet("get", "pods").out.splitlines()[1:]
    assert {line.split()[0] for line in shown} == {*STEADY, *LOOPING}
    assert "Traceback" not in node.log


def wait_for_failure(node: Node, name: str, attempt: int) -> None:
    """Wait until any attempt later than `attempt` has failed; on a slow machine, the agent may not see the next one
    fail.
    """

    def scheduled() -> list[pods.RestartScheduled]:
        return node.journal.events(pods.RestartScheduled, pod=f"default/{name}", container="app")

    node.journal.wait_for(f"{name} to fail again", lambda: any(one.attempt > attempt for one in scheduled()))


def check_crashes(node: Node) -> None:
    """Check that the restart count continues and that the back-off starts over, for a container that had crashed and
    for two that had not.
    """
    for name in (APPLIED[0], OF_FILES[0], WITH_SIDECAR[0]):
        attempt = restarts(node, name)
        immediate = crash(node, name, "app")
        assert immediate.attempt == attempt
        assert (immediate.back_off_seconds, immediate.next_back_off_seconds) == (0, 10)
        node.journal.wait_for_event(pods.ContainerStarted, pod=f"default/{name}", container="app", attempt=attempt + 1)
        with in_back_off(node, name, "app") as scheduled:
            more = scheduled.attempt - attempt - 1
            assert (scheduled.back_off_seconds, scheduled.next_back_off_seconds) == (10 << more, 20 << more)
            line = node.chronolet("get", "pods").line(f"{name} ")
            assert line.split()[2:4] == ["CrashLoopBackOff", str(scheduled.attempt)]


def check_sidecar(node: Node) -> None:
    """Check that a dead sidecar is restarted, and a completed init container is not."""
    name = WITH_SIDECAR[1]
    node.kill_process(name, "side")
    node.journal.wait_for_event(pods.ContainerStarted, pod=f"default/{name}", container="side", attempt=1)
    node.wait_until_running(name)
    assert not node.journal.events(pods.ContainerStartRequested, container="prepare")


def check_removals(node: Node) -> None:
    """Check that removed pods leave nothing behind."""
    assert node.chronolet("delete", "pod", APPLIED[1], WITH_HOOKS[0]).status == 0
    (node.folder / f"{OF_FILES[1]}.yaml").unlink()
    (node.folder / f"{WITH_SIDECAR[2]}.yaml").unlink()
    (node.folder / f"{LOOPING[0]}.yaml").unlink()
    for name in (APPLIED[1], WITH_HOOKS[0], OF_FILES[1], WITH_SIDECAR[2], LOOPING[0]):
        node.wait_until_gone(name)
        assert all_ids(node, name) == set()
    assert hooks(node, WITH_HOOKS[0]) == ["postStart", "preStop"]


def test_thirty_pods_survive_an_emptied_and_then_a_deleted_redis(
    own_node: Node, redis_server: PrivateRedis, docker_engine: PrivateDocker
) -> None:
    docker_events = DockerEvents(docker_engine)
    try:
        thirty_pods(own_node)
        before = current_state(own_node, docker_events)
        assert len(before.uids) == 30
        assert len(before.started) == 30 + len(APPLIED) + 2 * len(OF_FILES) + len(WITH_SIDECAR) + len(LOOPING)
        redis_server.client().flushall()
        wait_for_new_log(own_node, 60)
        check(own_node, docker_events, before)
        check_crashes(own_node)
        check_sidecar(own_node)

        own_node.journal.wait_for("the restarts", lambda: all(map(own_node.all_run, STEADY)))
        before = current_state(own_node, docker_events)
        redis_server.kill9()
        shutil.rmtree(redis_server.data)
        redis_server.data.mkdir()
        redis_server.start()
        wait_for_new_log(own_node, 60)
        check(own_node, docker_events, before)
        check_removals(own_node)
    finally:
        docker_events.close()
