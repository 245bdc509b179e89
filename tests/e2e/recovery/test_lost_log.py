"""The whole log is lost: running containers are adopted under the same ids, and everything continues."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from chronolet_schemas import container_gc, kernel, kube_events, manifests
from chronolet_schemas import pod as pods
from tests.e2e.fault_injection.agent_farm import AgentFarm
from tests.e2e.fault_injection.points import Point
from tests.e2e.node import Node, pod, shell
from tests.e2e.recovery.lost_log import all_ids, wait_for_new_log
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS, wait_until

APPLIED = pod("applied")
FILED = pod("filed")
LOOPING = pod("looping", shell("app", "exit 3"))


def three_pods(node: Node) -> Mapping[str, str]:
    """Start three pods: an applied one, one from a file at its third attempt, and one that keeps failing. Return
    Docker's start times of the first two by container id.
    """
    node.write("filed.yaml", FILED)
    node.write("looping.yaml", LOOPING)
    node.start()
    node.wait_until_running("filed")
    assert node.chronolet("apply", "-f", node.write_unwatched("applied.yaml", APPLIED)).status == 0
    for attempt in (1, 2):
        node.kill_process("filed", "app")
        node.journal.wait_for_event(pods.ContainerStarted, pod="default/filed", container="app", attempt=attempt)
    node.wait_until_running("applied", "filed")
    return node.started_at("applied", "filed")


@contextmanager
def between_failures(node: Node) -> Iterator[int]:
    """Pause the agent while `looping` waits for its next attempt; yield the number of that attempt, 3 or more."""

    def is_in_back_off() -> bool:
        one = node.journal.pods["default/looping"].container("app")
        return one is not None and one.phase == "backing_off" and one.next_attempt >= 3

    with node.paused_when("a back-off of looping", is_in_back_off):
        one = node.journal.pods["default/looping"].container("app")
        assert one is not None
        yield one.next_attempt


def check_adopted(node: Node, before: Mapping[str, str], uids: Mapping[str, str], attempt: int) -> None:
    """Check that nothing was touched, everything is in the new log, and later events are handled. `attempt` is the next
    attempt of `looping`.
    """
    journal = node.journal
    assert {one.pod: one.uid for one in journal.events(manifests.PodAdopted)} == uids
    assert [one.left_alone for one in journal.events(manifests.AdoptionFinished)] == [()]
    node.wait_until_running("applied", "filed")
    looping = journal.wait_for_event(pods.ContainerStarted, pod="default/looping")
    assert looping.attempt == attempt
    assert node.started_at("applied", "filed") == before
    assert not journal.events(pods.StrayFound)
    with node.paused_when("the logged attempts of looping", lambda: node.restarts("looping") >= [attempt]):
        shown = node.chronolet("get", "pods")
        assert shown.line("looping").split()[3] == str(node.restarts("looping")[0])
    assert shown.line("applied").split()[:4] == ["applied", "1/1", "Running", "0"]
    assert shown.line("filed").split()[:4] == ["filed", "1/1", "Running", "2"]
    assert node.chronolet("apply", "-f", node.write_unwatched("applied.yaml", APPLIED)).out == "pod/applied unchanged\n"
    node.kill_process("filed", "app")
    journal.wait_for_event(pods.ContainerStarted, pod="default/filed", container="app", attempt=3)
    assert node.chronolet("delete", "pod", "applied").status == 0
    node.wait_until_gone("applied")
    assert all_ids(node, "applied") == set()
    assert not (node.root / "pods" / uids["default/applied"]).exists()
    assert "Traceback" not in node.log


def test_a_log_lost_while_the_agent_runs(own_node: Node, redis_server: PrivateRedis) -> None:
    before = three_pods(own_node)
    uids = {name: state.uid for name, state in own_node.journal.pods.items()}
    assert len(uids) == 3
    with between_failures(own_node) as attempt:
        redis_server.client(timeout=HANG_SECONDS).flushall()
    own_node.write("later.yaml", pod("later"))  # the next write makes the agent notice the loss
    wait_for_new_log(own_node)
    check_adopted(own_node, before, uids, attempt)
    own_node.wait_until_running("later")
    own_node.write("filed.yaml", pod("filed", shell("app"), shell("more")))
    changed = own_node.journal.wait_for_event(manifests.PodApplied, pod="default/filed")
    own_node.journal.wait_for_event(pods.PodEnded, pod="default/filed", uid=uids["default/filed"])
    own_node.journal.wait_for_event(pods.ContainerStarted, pod="default/filed", uid=changed.uid, container="more")


def test_a_log_lost_with_agent_and_server(own_node: Node, redis_server: PrivateRedis) -> None:
    before = three_pods(own_node)
    uids = {name: state.uid for name, state in own_node.journal.pods.items()}
    own_node.write("gone.yaml", pod("gone"))
    own_node.wait_until_running("gone")
    gone = own_node.journal.pods["default/gone"].uid
    run = own_node.journal.wait_for_event(kernel.LogStarted).run
    with between_failures(own_node) as attempt:
        own_node.kill9()
    redis_server.kill9()
    shutil.rmtree(redis_server.data)
    redis_server.data.mkdir()
    redis_server.start()
    (own_node.folder / "gone.yaml").unlink()
    own_node.start()
    wait_for_new_log(own_node)
    assert own_node.journal.wait_for_event(kernel.LogStarted).run != run
    check_adopted(own_node, before, {**uids, "default/gone": gone}, attempt)
    own_node.journal.wait_for_event(pods.PodEnded, pod="default/gone", uid=gone)
    assert all_ids(own_node, "gone") == set()


def test_a_change_that_starts_nothing_is_kept(own_node: Node, redis_server: PrivateRedis) -> None:
    own_node.start()
    own_node.journal.wait_for_event(manifests.FolderRead)
    two = own_node.write_unwatched("two.yaml", pod("two", shell("app"), shell("old")))
    assert own_node.chronolet("apply", "-f", two).status == 0
    own_node.wait_until_running("two")
    changed = own_node.write_unwatched("two.yaml", pod("two"))
    assert own_node.chronolet("apply", "-f", changed).out == "pod/two configured\n"
    own_node.journal.wait_for_event(pods.SpecKept)
    own_node.journal.wait_for_event(pods.ContainerExited, container="old")
    # `wait` returns a moment before the engine lists the container as dead.
    wait_until(lambda: "old" not in own_node.running("two"), "the end of old in Docker's list")
    before = own_node.started_at("two")
    own_node.kill9()
    redis_server.client(timeout=HANG_SECONDS).flushall()
    own_node.start()
    wait_for_new_log(own_node)
    own_node.wait_until_running("two")
    assert own_node.chronolet("apply", "-f", changed).out == "pod/two unchanged\n"
    assert own_node.started_at("two") == before
    assert set(own_node.running("two")) == {"POD", "app"}

    lose_kept_manifests(own_node, redis_server)
    check_left_alone(own_node, before)


def lose_kept_manifests(node: Node, server: PrivateRedis) -> None:
    """Lose the log again together with the manifests in the state folder: nothing can be adopted."""
    node.kill9()
    server.client(timeout=HANG_SECONDS).flushall()
    shutil.rmtree(node.root / "pods")
    node.start()
    wait_for_new_log(node)
    node.journal.wait_for_event(manifests.FolderRead)
    node.journal.wait_for_event(container_gc.PolicySet)  # the collector has no plan before this event


def check_left_alone(node: Node, running: Mapping[str, str]) -> None:
    """Check that `gc run --left-alone` removes the dead containers of pod `two`, and its other containers after their
    death.
    """
    everything = all_ids(node, "two")
    dead = everything - set(running)
    assert (len(running), len(dead)) == (2, 1)
    (adopted,) = node.journal.events(manifests.AdoptionFinished)
    assert len(adopted.left_alone) == len(everything)
    assert planned(node) == {"removed": dead, "kept": set(running)}
    assert all_ids(node, "two") == everything
    (run,) = gc_runs(node)
    assert (run["removed"], run["failed"], run["error"]) == (1, 0, "")
    assert node.started_at("two") == running
    node.kill_process("two", "app")
    node.kill_process("two", "POD")
    wait_until(lambda: not node.running("two"), "the end of pod two in Docker's list")
    assert planned(node) == {"removed": set(running), "kept": set()}
    (run,) = gc_runs(node)
    assert (run["removed"], run["failed"], run["error"]) == (2, 0, "")
    assert all_ids(node, "two") == set()


def planned(node: Node) -> dict[str, set[str]]:
    """Return the ids of the containers in the plan of `gc run --left-alone`, by `removed` and `kept`."""
    result = node.chronolet("gc", "run", "--left-alone", "--dry-run", "-o", "json")
    assert result.status == 0, result.err
    plan = json.loads(result.out)["containers"]
    return {what: {one["id"] for one in plan[what]} for what in ("removed", "kept")}


def gc_runs(node: Node) -> list[dict[str, Any]]:
    """Return the results of `gc run --left-alone`, one per collector."""
    result = node.chronolet("gc", "run", "--left-alone", "-o", "json")
    assert result.status == 0, result.err
    return list(json.loads(result.out).values())


def test_a_deletion_in_progress_continues(own_node: Node, redis_server: PrivateRedis) -> None:
    deaf = pod("deaf", shell("app", "trap '' TERM; sleep 3600 & wait; wait"), terminationGracePeriodSeconds=8)
    farm = AgentFarm()
    try:
        agent = farm.start(own_node.job(point=Point(place="effect/after spec.end pod/default/deaf container/app")))
        own_node.journal.wait_for_event(manifests.FolderRead)
        assert own_node.chronolet("apply", "-f", own_node.write_unwatched("deaf.yaml", deaf)).status == 0
        own_node.wait_until_running("deaf")
        uid = own_node.journal.pods["default/deaf"].uid
        assert own_node.chronolet("delete", "pod", "deaf", "--wait=false").status == 0
        # The agent dies after it has written the request to disk, but before it acts on it.
        assert agent.ended.wait(HANG_SECONDS)
        assert agent.status == -9
    finally:
        farm.end()
    asked = own_node.journal.wait_for_event(pods.TerminationRequested)
    assert (own_node.root / "pods" / uid / "end.json").exists()
    redis_server.client(timeout=HANG_SECONDS).flushall()
    own_node.start()
    wait_for_new_log(own_node)
    again = own_node.journal.wait_for_event(pods.TerminationRequested)
    assert (again.uid, again.reason, again.deadline) == (uid, "Deleted", asked.deadline)
    shown = [line.split()[2] for line in own_node.chronolet("get", "pods").out.splitlines() if line.startswith("deaf ")]
    # On a busy machine the grace period may have ended: then the pod is shown as failed, or is gone.
    assert shown in (["Terminating"], ["Error"], [])
    assert (
        own_node.chronolet("apply", "-f", own_node.write_unwatched("deaf.yaml", pod("deaf"))).out
        == "pod/deaf created\n"
    )
    own_node.journal.wait_for_event(pods.PodEnded, uid=uid)
    exited = own_node.journal.wait_for_event(pods.ContainerExited, uid=uid)
    assert (exited.exit_code, exited.attempt) == (137, 0)
    assert exited.finished_at >= asked.deadline
    assert not own_node.journal.events(pods.ContainerStartRequested, uid=uid)
    own_node.wait_until_running("deaf")
    assert own_node.journal.pods["default/deaf"].uid != uid


def test_a_container_removed_before_the_first_listing_is_reported_as_missing(
    own_node: Node, redis_server: PrivateRedis
) -> None:
    own_node.write("filed.yaml", FILED)
    own_node.start()
    own_node.wait_until_running("filed")
    own_node.kill9()
    redis_server.client(timeout=HANG_SECONDS).flushall()
    farm = AgentFarm()
    try:
        # The adopted containers are in the log, but nothing has been listed yet.
        point = Point(place="step/before pleg", type="pleg.ContainersAdopted")
        agent = farm.start(own_node.job(point=point))
        assert agent.ended.wait(HANG_SECONDS)
        assert agent.status == -9
    finally:
        farm.end()
    own_node.docker.remove_container(own_node.running("filed")["app"]["Id"], force=True)
    own_node.start()
    wait_for_new_log(own_node)
    exited = own_node.journal.wait_for_event(pods.ContainerExited, pod="default/filed")
    assert (exited.attempt, exited.reason) == (0, "ContainerStatusUnknown")
    recorded = own_node.journal.wait_for_event(kube_events.Recorded, reason="ContainerStatusUnknown")
    assert (recorded.name, recorded.field_path) == ("filed", "spec.containers{app}")
    own_node.journal.wait_for_event(pods.ContainerStarted, pod="default/filed", container="app", attempt=1)
    own_node.wait_until_running("filed")
    assert len(own_node.journal.events(kube_events.Recorded, reason="ContainerStatusUnknown")) == 1


def test_nothing_is_adopted_or_created_while_docker_is_unreachable(own_node: Node, redis_server: PrivateRedis) -> None:
    socket = own_node.root / "docker.sock"
    engine = own_node.engine.host.removeprefix("unix://")
    own_node.environ["DOCKER_HOST"] = f"unix://{socket}"
    socket.symlink_to(engine)
    own_node.write("filed.yaml", FILED)
    own_node.start()
    own_node.wait_until_running("filed")
    before = own_node.started_at("filed")
    own_node.kill9()
    redis_server.client(timeout=HANG_SECONDS).flushall()
    socket.unlink()
    own_node.start()
    assert str(socket) in own_node.wait_for_log("waiting to adopt what runs")
    own_node.write("later.yaml", pod("later"))
    socket.symlink_to(engine)
    wait_for_new_log(own_node)
    own_node.wait_until_running("filed", "later")
    kinds = [type(line.event).__name__ for line in own_node.journal.lines if line.entry.entity == "manifests/node"]
    assert kinds[:2] == ["PodAdopted", "AdoptionFinished"]
    assert own_node.started_at("filed") == before
    reasons = [line.partition(" error=")[2] for line in own_node.log.splitlines() if "waiting to adopt what" in line]
    assert len(set(reasons)) == len(reasons), "each reason is logged once, however long it takes"
