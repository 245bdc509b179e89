"""A pod's life as a user sees it: real agent, real Docker, real Redis, commands of `chronolet`."""

import shutil
from pathlib import Path

from chronolet_schemas import manifests, pod, qos
from tests.e2e.back_off import in_back_off
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod

WEB = Path(__file__).parents[3] / "examples" / "web.yaml"


def test_the_web_pod_serves_restarts_and_reports_what_happened(node: Node) -> None:
    shutil.copy(WEB, node.folder / ".web.yaml")
    (node.folder / ".web.yaml").rename(node.folder / "web.yaml")
    node.wait_until_running("web")
    node.journal.wait_for("the page", lambda: "Hello from chronolet" in node.page(8080))
    writer = node.running("web")["writer"]

    node.kill_process("web", "server")
    node.journal.wait_for_event(pod.RestartScheduled, pod="default/web", attempt=0, back_off_seconds=0)

    with in_back_off(node, "web", "server", lambda: wait_until_serving(node)) as scheduled:
        result = node.chronolet("get", "pods")
        assert result.line("web").split()[:4] == ["web", "1/2", "CrashLoopBackOff", str(scheduled.attempt)]
        described = node.chronolet("describe", "pod", "web").out
        counted = f"Restart Count:  {scheduled.attempt}"
        for text in ("CrashLoopBackOff", counted, "Exit Code:    137", "Back-off restarting failed container"):
            assert text in described, described
        assert "response:200" in node.chronolet("logs", "web", "-c", "server").out
    more = scheduled.attempt - 1
    assert (scheduled.back_off_seconds, scheduled.next_back_off_seconds) == (10 << more, 20 << more)
    assert "server" in node.chronolet("get", "containers").out
    assert node.chronolet("get", "actors").line("pleg").split()[0] == "pleg"
    log = node.chronolet("log", "--pod", "web").out
    assert log.index("pleg.ContainerDied") < log.index("pod.ContainerExited") < log.index("pod.RestartScheduled")
    assert node.running("web")["writer"]["State"] == writer["State"], "the other container was touched"

    node.wait_until_running("web")
    node.journal.wait_for("the page after the back-off", lambda: "Hello from chronolet" in node.page(8080))
    assert node.chronolet("get", "pods").line("web").split()[:4] == [
        "web",
        "2/2",
        "Running",
        str(scheduled.attempt + 1),
    ]

    (node.folder / "web.yaml").unlink()
    node.wait_until_gone("web")
    assert node.running("web") == {}
    assert node.page(8080) == ""
    assert node.chronolet("get", "pod", "web").status == 1


def wait_until_serving(node: Node) -> None:
    """Wait until the pod serves again after a crash and has logged the request."""
    node.wait_until_running("web")
    node.journal.wait_for("the page again", lambda: "Hello from chronolet" in node.page(8080))
    node.journal.wait_for(
        "its log line of the request", lambda: "response:200" in node.chronolet("logs", "web", "-c", "server").out
    )


def test_apply_creates_changes_and_deletes(node: Node) -> None:
    file = node.write_unwatched("applied.yaml", a_pod("applied", shell("stays"), shell("changes")))
    assert node.chronolet("apply", "-f", file).out == "pod/applied created\n"
    node.wait_until_running("applied")
    before = node.running("applied")
    assert node.chronolet("apply", "-f", file).out == "pod/applied unchanged\n"

    changed = shell(
        "changes", "trap 'exit 0' TERM; echo $WORD; sleep 3600 & wait", env=[{"name": "WORD", "value": "new"}]
    )
    file = node.write_unwatched("applied.yaml", a_pod("applied", shell("stays"), changed))
    assert node.chronolet("apply", "-f", file).out == "pod/applied configured\n"
    node.journal.wait_for_event(pod.ContainerStarted, pod="default/applied", container="changes", attempt=1)
    after = node.running("applied")
    assert after["stays"]["State"] == before["stays"]["State"]
    assert after["POD"]["State"] == before["POD"]["State"]
    node.journal.wait_for("its output", lambda: node.chronolet("logs", "applied", "changes").out == "new\n")

    deleted = node.chronolet("delete", "pod", "applied")
    assert (deleted.status, deleted.out) == (0, "pod/applied deleted\n"), deleted
    node.wait_until_gone("applied")
    assert node.running("applied") == {}
    again = node.chronolet("delete", "pod", "applied")
    assert (again.status, "not found" in again.err) == (1, True)


def test_a_changed_file_makes_a_new_pod_after_the_graceful_end_of_the_old_one(node: Node) -> None:
    slow = "trap 'sleep 0.5; exit 7' TERM; echo ready; sleep 3600 & wait"
    node.write("change.yaml", a_pod("change", shell("app", slow), terminationGracePeriodSeconds=600))
    node.wait_until_running("change")
    node.journal.wait_for("its trap", lambda: node.output("change", "app") == "ready\n")
    old = node.journal.pods["default/change"].uid
    node.write("change.yaml", a_pod("change", shell("other")))
    started = node.journal.wait_for(
        "the next pod's container",
        lambda: [one for one in node.journal.events(pod.ContainerStarted, pod="default/change") if one.uid != old],
    )
    events = [line.event for line in node.journal.lines]
    ended = node.journal.wait_for_event(pod.PodEnded, uid=old)
    first = next(one for one in events if isinstance(one, pod.SandboxStartRequested) and one.uid == started[0].uid)
    assert events.index(ended) < events.index(first)
    assert node.journal.wait_for_event(pod.ContainerExited, uid=old).exit_code == 7
    assert set(node.running("change")) == {"POD", "other"}


def test_a_pod_name_belongs_to_the_first_file(node: Node) -> None:
    first = node.write("first.yaml", a_pod("twice"))
    node.wait_until_running("twice")
    uid = node.journal.pods["default/twice"].uid
    second = node.write("second.yaml", a_pod("twice", shell("second")))
    refused = node.journal.wait_for_event(manifests.PodRefused, pod="default/twice")
    assert str(first) in refused.reason
    assert str(second) in refused.reason
    applied = node.chronolet("apply", "-f", node.write_unwatched("third.yaml", a_pod("twice")))
    assert (applied.status, str(first) in applied.err) == (1, True), applied
    deleted = node.chronolet("delete", "pod", "twice")
    assert (deleted.status, str(first) in deleted.err) == (1, True), deleted

    first.unlink()
    node.journal.wait_for(
        "the second file's pod", lambda: getattr(node.journal.pods.get("default/twice"), "uid", uid) != uid
    )
    node.wait_until_running("twice")
    assert set(node.running("twice")) == {"POD", "second"}


def test_an_unsupported_field_blocks_only_its_own_pod(node: Node) -> None:
    node.write("blocked.yaml", a_pod("blocked", shell("app", envFrom=[{"secretRef": {"name": "s"}}])))
    node.write("other.yaml", a_pod("other"))
    node.wait_for_status("blocked", "CreateContainerConfigError")
    node.wait_until_running("other")
    assert node.chronolet("get", "pods").line("blocked").split()[1:3] == ["0/1", "CreateContainerConfigError"]
    assert "spec.containers[0].envFrom" in node.chronolet("describe", "pod", "blocked").out
    assert "app" not in node.running("blocked")


def test_images_that_cannot_be_pulled(node: Node) -> None:
    node.write("never.yaml", a_pod("never", {"name": "app", "image": "none:1", "imagePullPolicy": "Never"}))
    node.write("nowhere.yaml", a_pod("nowhere", {"name": "app", "image": "localhost:1/none:1"}))
    node.wait_for_status("never", "ErrImageNeverPull")
    node.journal.wait_for_event(pod.ImageFailed, pod="default/nowhere", reason="ErrImagePull")
    node.wait_for_status("nowhere", "ImagePullBackOff")
    described = node.chronolet("describe", "pod", "nowhere").out
    assert 'Failed to pull image "localhost:1/none:1"' in described
    assert 'Back-off pulling image "localhost:1/none:1"' in described


def test_a_command_that_does_not_exist(node: Node) -> None:
    node.write("lost.yaml", a_pod("lost", {"name": "app", "image": "chronolet/busybox:1", "command": ["/no/such"]}))
    failed = node.journal.wait_for_event(pod.ContainerStartFailed, pod="default/lost")
    assert (failed.reason, failed.exit_code) == ("RunContainerError", 127)
    assert "/no/such" in failed.message
    node.wait_for_status("lost", "CrashLoopBackOff")


def test_a_pod_waits_for_a_host_port_in_use(node: Node) -> None:
    ports = [{"containerPort": 80, "hostPort": 8099}]
    node.write("has.yaml", a_pod("has", shell("app", ports=ports)))
    node.wait_until_running("has")
    node.write("wants.yaml", a_pod("wants", shell("app", ports=ports)))
    awaited = node.journal.wait_for_event(qos.HostPortsAwaited, pod="default/wants")
    assert (awaited.holder, "8099" in awaited.message) == ("default/has", True)
    assert node.all_run("has")
    node.journal.wait_for("its reason", lambda: "WaitingForHostPorts" in node.chronolet("describe", "pod", "wants").out)
    (node.folder / "has.yaml").unlink()
    node.wait_until_running("wants")
    (node.folder / "wants.yaml").unlink()
    node.wait_until_gone("wants")


def test_a_container_that_ignores_sigterm_is_killed_after_its_grace_period(node: Node) -> None:
    path = node.write("deaf.yaml", a_pod("deaf", shell("app", "trap '' TERM; while :; do sleep 1; done")))
    node.wait_until_running("deaf")
    path.unlink()
    exited = node.journal.wait_for_event(pod.ContainerExited, pod="default/deaf")
    asked = node.journal.wait_for_event(pod.ContainerStopRequested, pod="default/deaf")
    assert exited.exit_code == 137
    assert exited.finished_at >= asked.deadline
    node.wait_until_gone("deaf")


def test_a_dead_sandbox_that_is_started_by_hand_is_stopped(node: Node) -> None:
    node.write("twins.yaml", a_pod("twins", shell("app")))
    node.wait_until_running("twins")
    replaced = node.running("twins")["POD"]["Id"]
    node.kill_process("twins", "POD")
    node.journal.wait_for_event(pod.SandboxExited, pod="default/twins")
    node.docker.start(replaced)
    stray = node.journal.wait_for_event(pod.StrayFound, pod="default/twins")
    assert stray.id == replaced
    node.journal.wait_for_event(pod.ContainerExited, pod="default/twins", id=replaced)
    node.journal.wait_for_event(pod.SandboxStarted, pod="default/twins", attempt=1)
    node.wait_until_running("twins")
    assert node.running("twins")["POD"]["Id"] != replaced
    (node.folder / "twins.yaml").unlink()
    node.wait_until_gone("twins")


def test_pods_that_complete(node: Node) -> None:
    node.write("once.yaml", a_pod("once", shell("app", "exit 0"), restartPolicy="Never"))
    node.write("fails.yaml", a_pod("fails", shell("app", "exit 3"), restartPolicy="Never"))
    mount = [{"name": "scratch", "mountPath": "/scratch"}]
    second_time = "test -e /scratch/been && exit 0; touch /scratch/been; exit 1"
    retried = shell("app", second_time, volumeMounts=mount)
    volumes = [{"name": "scratch", "emptyDir": {}}]
    node.write("retried.yaml", a_pod("retried", retried, restartPolicy="OnFailure", volumes=volumes))

    def phases() -> list[str]:
        statuses = (node.journal.status(f"default/{name}") for name in ("once", "fails", "retried"))
        return [status.phase if status else "" for status in statuses]

    node.journal.wait_for("their ends", lambda: phases() == ["Succeeded", "Failed", "Succeeded"])
    lines = node.chronolet("get", "pods")
    assert lines.line("once").split()[1:4] == ["0/1", "Completed", "0"]
    assert lines.line("fails").split()[1:4] == ["0/1", "Error", "0"]
    assert lines.line("retried").split()[1:4] == ["0/1", "Completed", "1"]
    assert node.container_states("fails") == ["Error"]


def test_volumes_shared_by_containers_and_with_the_host(node: Node, tmp_path: Path) -> None:
    (tmp_path / "word").write_text("from the host\n")
    shared, host = {"name": "shared", "mountPath": "/shared"}, {"name": "host", "mountPath": "/host", "readOnly": True}
    stay = "trap 'exit 0' TERM; sleep 3600 & wait"
    writes = shell("writes", f"cat /host/word > /shared/new; mv /shared/new /shared/word; {stay}")
    reads = shell("reads", f"until test -e /shared/word; do sleep 0.1; done; cat /shared/word; {stay}")
    containers = [writes | {"volumeMounts": [shared, host]}, reads | {"volumeMounts": [shared]}]
    volumes = [{"name": "shared", "emptyDir": {}}, {"name": "host", "hostPath": {"path": str(tmp_path)}}]
    node.write("share.yaml", a_pod("share", *containers, volumes=volumes))
    node.wait_until_running("share")
    node.journal.wait_for("the output", lambda: node.chronolet("logs", "share", "reads").out == "from the host\n")
    uid = node.journal.pods["default/share"].uid
    assert (node.root / "pods" / uid).is_dir()
    (node.folder / "share.yaml").unlink()
    node.wait_until_gone("share")
    assert not (node.root / "pods" / uid).exists()
    assert (tmp_path / "word").exists(), "the host's file was removed"
