"""Redis emptied under thirty running pods, and its folder gone: nothing that runs is touched, and what dies later is
dealt with as always.
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
from tests.e2e.recovery.lost_log import all_ids, new_log
from tests.support.docker import PrivateDocker
from tests.support.redis import PrivateRedis

APPLIED = [f"applied-{number}" for number in range(14)]
FILED = [f"filed-{number}" for number in range(12)]
LOOPING = [f"looping-{number}" for number in range(4)]
STEADY = [*APPLIED, *FILED]
HOOKED = APPLIED[-2:]
"""Applied pods whose container has hooks, which write a line each."""
SIDECARS = FILED[-4:]
"""Pods of files that have an init container that is done and a sidecar that runs, too."""


class Before(msgspec.Struct, frozen=True):
    """State when the log was lost. `started` by container id; `actions` and `signals` by Docker's events."""

    uids: Mapping[str, str]
    started: Mapping[str, str]
    restarts: Mapping[str, int]
    lives: Mapping[str, list[str]]
    signals: set[str]


def thirty_pods(node: Node) -> None:
    """Applied ones, ones of files of which two are at their third attempt, and some that keep failing."""
    node.start()
    node.journal.wait_for("the log", lambda: node.journal.lines)
    for name in FILED:
        inits = [shell("prepare", "exit 0"), shell("side", restartPolicy="Always")] if name in SIDECARS else []
        node.write(f"{name}.yaml", pod(name, shell("app"), shell("beside"), initContainers=inits))
    for name in LOOPING:
        node.write(f"{name}.yaml", pod(name, shell("app", "exit 3"), shell("beside")))
    documents = [hooked(node, name) if name in HOOKED else pod(name) for name in APPLIED]
    assert node.chronolet("apply", "-f", node.write_unwatched("applied.yaml", *documents)).status == 0
    node.wait_until_running(*STEADY)
    for attempt in (1, 2):
        for name in FILED[:2]:
            node.kill_process(name, "app")
        for name in FILED[:2]:
            node.journal.wait_for_event(pods.ContainerStarted, pod=f"default/{name}", container="app", attempt=attempt)
    for name in HOOKED:
        node.journal.wait_for_event(pods.HookEnded, pod=f"default/{name}", hook="PostStart", outcome="Succeeded")
    for name in LOOPING:
        node.journal.wait_for_event(pods.ContainerStarted, pod=f"default/{name}", container="beside")
        # Held back for so long the next time: this time a slow agent may have come to it when the wait was over.
        node.journal.wait_for_event(pods.RestartScheduled, pod=f"default/{name}", attempt=1, next_back_off_seconds=20)


def hooked(node: Node, name: str) -> dict[str, Any]:
    """Its hooks say in a file of the host that they ran."""
    (node.root / "hooks").mkdir(exist_ok=True)
    lifecycle = {
        hook: {"exec": {"command": ["/bin/sh", "-c", f"echo {hook} >> /hooks/{name}"]}}
        for hook in ("postStart", "preStop")
    }
    app = shell("app", lifecycle=lifecycle, volumeMounts=[{"name": "hooks", "mountPath": "/hooks"}])
    volumes = [{"name": "hooks", "hostPath": {"path": str(node.root / "hooks")}}]
    return pod(name, app, volumes=volumes, terminationGracePeriodSeconds=600)  # however long a hook takes


def hooks(node: Node, name: str) -> list[str]:
    """Those that ran."""
    return (node.root / "hooks" / name).read_text().split()


def taken(node: Node, docker_events: DockerEvents) -> Before:
    """Of the pods as they are now."""
    node.wait_until_running(*STEADY)
    node.journal.wait_for("Docker's start events of all containers", lambda: has_seen_all(node, docker_events))
    return Before(
        uids={name: state.uid for name, state in node.journal.pods.items()},
        started=started(node),
        restarts={name: restarts(node, name) for name in (*STEADY, *LOOPING)},
        lives=lives(node, docker_events),
        signals=docker_events.signals(node.name),
    )


def started(node: Node) -> dict[str, str]:
    """When each container that runs for good was started, by Docker, under its id."""
    return {one["Id"]: one["State"]["StartedAt"] for one in lasting(node)}


def lasting(node: Node) -> list[dict[str, Any]]:
    """What runs, but for what fails at once, which may just be running."""
    there = [(name in LOOPING, node.running(name)) for name in (*STEADY, *LOOPING)]
    return [one for fails, found in there for name, one in found.items() if not (fails and name == "app")]


def has_seen_all(node: Node, docker_events: DockerEvents) -> bool:
    """Whether the witness, who hears of it later, knows of each start."""
    seen = docker_events.actions(node.name)
    return all(seen.get(one["Name"].removeprefix("/"), [""])[-1] == "start" for one in lasting(node))


def restarts(node: Node, name: str) -> int:
    """Of the container `app`."""
    status = node.journal.status(f"default/{name}")
    assert status is not None
    (count,) = (one.restart_count for one in status.container_statuses if one.name == "app")
    return int(count or 0)


def lives(node: Node, docker_events: DockerEvents) -> dict[str, list[str]]:
    """What Docker has seen of each container that was not meant to fail; what had died before may be collected."""
    return {
        name: actions[:-1] if len(actions) > 1 and dead_and_gone(*actions[-2:]) else actions
        for name, actions in docker_events.actions(node.name).items()
        if not name.startswith("chrono_app_looping")
    }


def dead_and_gone(before: str, last: str) -> bool:
    """Whether a life ended with the removal of what had died."""
    return before.startswith("die") and last == "destroy"


def check(node: Node, docker_events: DockerEvents, before: Before) -> None:
    """All thirty are known as they were, nothing was touched, and those that fail go on to."""
    journal = node.journal
    assert {one.pod: one.uid for one in journal.events(manifests.PodAdopted)} == before.uids
    assert [one.left_alone for one in journal.events(manifests.AdoptionFinished)] == [()]
    node.wait_until_running(*STEADY)
    assert {name: restarts(node, name) for name in STEADY} == {name: before.restarts[name] for name in STEADY}
    for name in LOOPING:
        wait_for_failure(node, name, before.restarts[name])
    assert lives(node, docker_events) == before.lives
    assert docker_events.signals(node.name) == before.signals
    assert started(node).items() >= before.started.items()
    assert not journal.events(pods.StrayFound)
    assert [hooks(node, name) for name in HOOKED] == [["postStart"], ["postStart"]]
    assert not journal.events(pods.SandboxStartRequested)
    shown = node.chronolet("get", "pods").out.splitlines()[1:]
    assert {line.split()[0] for line in shown} == {*STEADY, *LOOPING}
    assert "Traceback" not in node.log


def wait_for_failure(node: Node, name: str, attempt: int) -> None:
    """Until a later attempt than this one has failed; a slow test may miss the next one."""

    def scheduled() -> list[pods.RestartScheduled]:
        return node.journal.events(pods.RestartScheduled, pod=f"default/{name}", container="app")

    node.journal.wait_for(f"{name} to fail again", lambda: any(one.attempt > attempt for one in scheduled()))


def check_crashes(node: Node) -> None:
    """One that never crashed and one that did: the count goes on, and so does the back-off."""
    for name in (APPLIED[0], FILED[0], SIDECARS[0]):
        attempt = restarts(node, name)
        at_once = crash(node, name, "app")
        assert at_once.attempt == attempt
        assert (at_once.back_off_seconds, at_once.next_back_off_seconds) == (0, 10)
        node.journal.wait_for_event(pods.ContainerStarted, pod=f"default/{name}", container="app", attempt=attempt + 1)
        with in_back_off(node, name, "app") as waits:
            more = waits.attempt - attempt - 1
            assert (waits.back_off_seconds, waits.next_back_off_seconds) == (10 << more, 20 << more)
            line = node.chronolet("get", "pods").line(f"{name} ")
            assert line.split()[2:4] == ["CrashLoopBackOff", str(waits.attempt)]


def check_sidecar(node: Node) -> None:
    """One that dies is started again, and what is done stays done."""
    name = SIDECARS[1]
    node.kill_process(name, "side")
    node.journal.wait_for_event(pods.ContainerStarted, pod=f"default/{name}", container="side", attempt=1)
    node.wait_until_running(name)
    assert not node.journal.events(pods.ContainerStartRequested, container="prepare")


def check_ends(node: Node) -> None:
    """What goes, goes with all that it has."""
    assert node.chronolet("delete", "pod", APPLIED[1], HOOKED[0]).status == 0
    (node.folder / f"{FILED[1]}.yaml").unlink()
    (node.folder / f"{SIDECARS[2]}.yaml").unlink()
    (node.folder / f"{LOOPING[0]}.yaml").unlink()
    for name in (APPLIED[1], HOOKED[0], FILED[1], SIDECARS[2], LOOPING[0]):
        node.wait_until_gone(name)
        assert all_ids(node, name) == set()
    assert hooks(node, HOOKED[0]) == ["postStart", "preStop"]


def test_a_server_emptied_and_then_gone_under_thirty_pods(
    own_node: Node, redis_server: PrivateRedis, docker_engine: PrivateDocker
) -> None:
    docker_events = DockerEvents(docker_engine)
    try:
        thirty_pods(own_node)
        before = taken(own_node, docker_events)
        assert len(before.uids) == 30
        assert len(before.started) == 30 + len(APPLIED) + 2 * len(FILED) + len(SIDECARS) + len(LOOPING)
        redis_server.client().flushall()
        new_log(own_node, redis_server, 60)
        check(own_node, docker_events, before)
        check_crashes(own_node)
        check_sidecar(own_node)

        own_node.journal.wait_for("their restarts", lambda: all(map(own_node.all_run, STEADY)))
        before = taken(own_node, docker_events)
        redis_server.kill9()
        shutil.rmtree(redis_server.data)
        redis_server.data.mkdir()
        redis_server.start()
        new_log(own_node, redis_server, 60)
        check(own_node, docker_events, before)
        check_ends(own_node)
    finally:
        docker_events.close()
