"""Collecting dead containers and logs on a real engine: what is in use or foreign is kept, the run removes what the
plan lists, and a kill in the middle of a run does not change the result.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

import docker.errors
import pytest

from chronolet.ports.runtime import labels
from chronolet_schemas import container_gc
from chronolet_schemas import pod as pods
from tests.e2e.collecting.containers import dead_containers, dead_containers_named, run_to_end, unidentified_containers
from tests.e2e.collecting.runs import gc_plan, ids, killed_job, send_command
from tests.e2e.fault_injection.agent_farm import AgentFarm
from tests.e2e.fault_injection.faults import KillTarget
from tests.e2e.fault_injection.service_manager import ServiceManager
from tests.e2e.node import BUSYBOX, Node, pod, shell
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import PrivateRedis

CRASHES_TWICE = (
    "echo run >> /runs/of-app; echo $HOSTNAME; [ $(wc -l < /runs/of-app) -gt 2 ] || exit 3; "
    "trap 'exit 0' TERM; sleep 3600 & wait"
)


def test_only_dead_containers_and_their_logs_are_removed(node: Node, small_engine: PrivateDocker) -> None:
    app = shell("app", CRASHES_TWICE, volumeMounts=[{"name": "runs", "mountPath": "/runs"}])
    node.write("crash.yaml", pod("crash", app, shell("good"), volumes=[{"name": "runs", "emptyDir": {}}]))
    node.start()
    # Wait for the run at the start, so that only the requested run handles what follows.
    node.journal.wait_for_event(container_gc.RunFinished)
    foreign = node.docker.create_container(BUSYBOX, ["true"], name="foreign")["Id"]
    odd = node.docker.create_container(BUSYBOX, ["true"], name="odd", labels={labels.NODE: node.name})["Id"]
    run_to_end(node, foreign, odd)
    logs = node.root / "logs"
    (logs / "pods" / "default_gone_u9").mkdir(parents=True)
    os.utime(logs / "pods" / "default_gone_u9", (0, 0))  # so old that no recent event of its pod can be in flight
    (logs / "containers" / "gone_default_app-k9.log").symlink_to(logs / "pods" / "default_gone_u9" / "0.log")
    node.journal.wait_for_event(pods.ContainerStarted, pod="default/crash", container="app", attempt=2)
    assert len(dead_containers_named(node, "app")) == 2
    (own,) = (logs / "pods").glob("default_crash_*")
    assert {one.name for one in (own / "app").iterdir()} == {"0.log", "1.log", "2.log"}

    plan, calls = gc_plan(node, small_engine)
    assert {call.partition(" ")[0] for call in calls} == {"GET"}
    ran = node.chronolet("gc", "run", "-o", "json")
    assert ran.status == 0, ran
    done = json.loads(ran.out)["containers"]
    # Several objects are removed concurrently, so their order may differ.
    assert sorted(ids(plan["containers"]["removed"])) == sorted(ids(done["objects"]))
    assert {one["rule"] for one in done["objects"]} == {
        "per_container_limit",
        "unidentified",
        "deleted_pod",
        "dangling",
    }
    (kept,) = dead_containers_named(node, "app")
    assert node.docker.inspect_container(foreign)["State"]["Status"] == "exited"
    assert node.running("crash").keys() == {"POD", "app", "good"}
    assert list((logs / "pods").iterdir()) == [own]
    # The kept container's log can be found by its path; of the removed container not even a link is left.
    (link,) = (one for one in (logs / "containers").glob("crash_default_app-*") if one.stem.endswith(kept))
    assert link.readlink() == own / "app" / "1.log"
    assert json.loads(link.read_text())["log"] == "crash\n"
    assert not (own / "app" / "0.log").is_symlink()
    assert all(one.exists() for one in (logs / "containers").iterdir())
    assert node.chronolet("logs", "crash", "-c", "app", "-p").out == "crash\n"
    again = json.loads(node.chronolet("gc", "run", "-o", "json").out)["containers"]
    assert again["objects"] == []
    (node.folder / "crash.yaml").unlink()
    node.journal.wait_for_event(pods.PodEnded, pod="default/crash")
    assert list((logs / "pods").iterdir()) == list((logs / "containers").iterdir()) == []


@pytest.mark.parametrize("target", ["agent", "redis"])
def test_a_kill_in_the_middle_of_a_run_over_containers_changes_nothing(
    node: Node, redis_server: PrivateRedis, target: KillTarget
) -> None:
    farm = AgentFarm()
    place = "effect/after docker.remove container_gc/node remove/2"
    service_manager = ServiceManager(
        farm, redis_server, killed_job(node, place, 1, target=target, redis_pid=redis_server.pid)
    )
    try:
        node.journal.wait_for_event(container_gc.RunFinished)
        created = unidentified_containers(node, 8)
        send_command(node, "container_gc", container_gc.CollectContainers(request="now"))
        finished = node.journal.wait_for_event(container_gc.RunFinished, request="now")
    finally:
        service_manager.kill()
        farm.end()
    assert service_manager.killed
    assert service_manager.exits == ([-9] if target == "agent" else [])
    assert (finished.removed, finished.failed, finished.error) == (8, 0, "")
    removed = [event.id for event in node.journal.events(container_gc.Removed)]
    assert (len(removed), set(removed)) == (8, created)
    assert len(node.journal.events(container_gc.RunStarted)) == 1
    assert len(node.journal.events(container_gc.RunRequested)) == 1
    assert dead_containers(node) == set()


def check_last_end(node: Node, name: str) -> None:
    """Check that Docker has the container whose output `logs -p` shows, or that a newer death will be recorded."""
    gone: set[str] = set()

    def found() -> bool:
        last = ended(node, name)
        if last and last not in gone:
            with suppress(docker.errors.NotFound):
                node.docker.inspect_container(last)
                return True
            gone.add(last)
        return not last

    node.journal.wait_for(f"the last death of {name}, or a newer one", found)


def ended(node: Node, name: str) -> str:
    """Return the id of the last dead attempt according to the log; empty if there is none."""
    state = node.journal.pods.get(f"default/{name}")
    one = state.container("app") if state is not None else None
    return one.exit.id if one is not None and one.exit is not None else ""


def test_a_collector_that_runs_all_the_time_disturbs_no_pod(node: Node) -> None:
    node.environ["CHRONOLET_CONTAINER_GC_PERIOD"] = "20ms"
    names = [f"crash{number}" for number in range(6)]
    for name in names:
        node.write(f"{name}.yaml", pod(name, shell("app", "echo $HOSTNAME; exit 3"), shell("good")))
    node.write("once.yaml", pod("once", shell("app", "echo $HOSTNAME"), restartPolicy="Never"))
    node.start()

    def restarted() -> bool:
        for name in names:
            check_last_end(node, name)
        gone = {(event.pod, event.rule) for event in node.journal.events(container_gc.Removed)}
        return gone >= {(f"default/{name}", "per_container_limit") for name in names}

    node.journal.wait_for("a restart of each pod and the removal of its first attempt", restarted)

    def is_in_back_off() -> bool:
        app = node.journal.pods[f"default/{names[-1]}"].container("app")
        return app is not None and app.phase == "backing_off"

    # The next death makes the collector remove this container, even while its output is being read.
    with node.paused_when(f"a back-off of {names[-1]}", is_in_back_off):
        assert node.chronolet("logs", names[-1], "-c", "app", "-p").out == f"{names[-1]}\n"
    # A completed container is kept, too, unless the disk is full.
    node.journal.wait_for_event(container_gc.PodFinished, pod="default/once")
    assert node.chronolet("logs", "once").out == "once\n"
    for name in (*names, "once"):
        (node.folder / f"{name}.yaml").unlink()
    for name in (*names, "once"):
        node.journal.wait_for_event(pods.PodEnded, pod=f"default/{name}")
    runs = node.journal.events(container_gc.RunFinished)
    assert runs
    assert [run.error for run in runs if run.error] == []
    assert node.journal.events(container_gc.NotRemoved) == []
    removed = [event.id for event in node.journal.events(container_gc.Removed)]
    assert len(removed) == len(set(removed)), "something was removed twice"
    assert node.docker.containers(all=True, filters={"label": f"{labels.NODE}={node.name}"}) == []
