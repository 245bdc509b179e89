"""Containers that cannot be started, do not end, or lose what they depend on: each pod reports its error in the
kubelet's words and is retried, and no other pod is affected.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chronolet.ports.runtime import labels
from chronolet_schemas import pod
from tests.e2e.node import BUSYBOX, Node, shell
from tests.e2e.node import pod as a_pod

ID = re.compile("[0-9a-f]{64}")


@pytest.fixture(autouse=True)
def other_pod(node: Node) -> Iterator[None]:
    """Run a healthy pod during the test; check that none of its containers is restarted and that the agent survives."""
    node.write("other.yaml", a_pod("other"))
    node.wait_until_running("other")
    before = node.started_at("other")
    yield
    assert node.started_at("other") == before
    assert node.runs


def start_another(node: Node, name: str) -> None:
    node.write(f"{name}.yaml", a_pod(name))
    node.wait_until_running(name)


def test_a_command_that_is_not_in_path(node: Node) -> None:
    node.write("nowhere.yaml", a_pod("nowhere", {"name": "app", "image": BUSYBOX, "command": ["no-such-program"]}))
    failed = node.journal.wait_for_event(pod.ContainerStartFailed, pod="default/nowhere")
    assert (failed.reason, failed.exit_code) == ("RunContainerError", 127)
    assert failed.message.startswith('failed to start container "app": ')
    assert "executable file not found in $PATH" in failed.message
    assert not ID.search(failed.message)
    node.wait_for_status("nowhere", "CrashLoopBackOff")
    start_another(node, "after-nowhere")
    again = node.journal.wait_for_event(pod.ContainerStartFailed, pod="default/nowhere", attempt=1)
    assert again.message == failed.message


def test_a_hanging_post_start_hook_keeps_its_pod_unready(node: Node) -> None:
    hook = {"postStart": {"exec": {"command": ["sleep", "3600"]}}}
    path = node.write("stuck.yaml", a_pod("stuck", shell("app", lifecycle=hook)))
    node.journal.wait_for_event(pod.HookPrepared, pod="default/stuck")
    assert node.chronolet("get", "pods").line("stuck").split()[1] == "0/1"
    start_another(node, "after-stuck")
    path.unlink()
    node.wait_until_gone("stuck")


def test_a_hanging_pre_stop_hook_ends_with_the_grace_period(node: Node) -> None:
    hook = {"preStop": {"exec": {"command": ["sleep", "3600"]}}}
    clings = a_pod("clings", shell("app", lifecycle=hook), terminationGracePeriodSeconds=600)
    assert node.chronolet("apply", "-f", node.write_unwatched("clings.yaml", clings)).status == 0
    node.wait_until_running("clings")
    assert node.chronolet("delete", "pod", "clings", "--wait=false").status == 0
    node.journal.wait_for_event(pod.HookPrepared, pod="default/clings")
    start_another(node, "after-clings")
    assert node.chronolet("delete", "pod", "clings", "--now").status == 0
    node.wait_until_gone("clings")
    ended = node.journal.wait_for_event(pod.HookEnded, pod="default/clings")
    assert ended.outcome == "Unfinished"


def test_a_failing_post_start_hook_kills_its_container_and_is_reported(node: Node) -> None:
    hook = {"postStart": {"exec": {"command": ["/bin/sh", "-c", "echo no luck; exit 4"]}}}
    node.write("luckless.yaml", a_pod("luckless", shell("app", lifecycle=hook)))
    ended = node.journal.wait_for_event(pod.HookEnded, pod="default/luckless")
    assert ended.outcome == "Failed"
    assert "exited with 4: no luck" in ended.message
    node.wait_for_status("luckless", "CrashLoopBackOff")
    assert "FailedPostStartHook" in node.chronolet("describe", "pod", "luckless").out


def test_a_volume_whose_path_vanishes(node: Node, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.mkdir()
    volumes = [{"name": "data", "hostPath": {"path": str(path), "type": "Directory"}}]
    mounts = [{"name": "data", "mountPath": "/data"}]
    node.write("homeless.yaml", a_pod("homeless", shell("app", volumeMounts=mounts), volumes=volumes))
    node.wait_until_running("homeless")
    shutil.rmtree(path)
    node.kill_process("homeless", "app")
    message = f'MountVolume.SetUp failed for volume "data" : hostPath type check failed: {path} is not a directory'
    node.journal.wait_for(
        "the report of the error", lambda: message in node.chronolet("describe", "pod", "homeless").out
    )
    start_another(node, "after-homeless")
    path.mkdir()
    node.journal.wait_for_event(pod.ContainerStarted, pod="default/homeless", attempt=1)
    node.wait_until_running("homeless")


def test_a_port_conflict_has_one_message(node: Node) -> None:
    """The port is held by a container that belongs to no pod: if a pod held it, the next pod would wait before its
    sandbox is created.
    """
    bound = node.docker.create_host_config(port_bindings={80: 8097})
    held = node.docker.create_container(BUSYBOX, ["sleep", "3600"], ports=[80], host_config=bound)
    node.docker.start(held["Id"])
    ports = [{"containerPort": 80, "hostPort": 8097}]
    node.write("clash.yaml", a_pod("clash", shell("app", ports=ports)))

    def failures() -> list[pod.SandboxStartFailed]:
        return node.journal.events(pod.SandboxStartFailed, pod="default/clash")

    node.journal.wait_for("two failures", lambda: len(failures()) > 1)
    failed = failures()
    assert len({one.message for one in failed}) == 1
    assert "8097" in failed[0].message
    assert "port is already allocated" in failed[0].message
    assert not ID.search(failed[0].message)
    start_another(node, "after-clash")
    node.docker.remove_container(held["Id"], force=True)
    node.wait_until_running("clash")


def wait_for_failed_sandbox(node: Node, name: str) -> str:
    """Wait until the sandbox has failed after a container was created for it, and both are removed; return the pod's
    uid.
    """
    failed = node.journal.wait_for_event(pod.SandboxStartFailed, pod=f"default/{name}")
    node.journal.wait_for_event(pod.ContainerCreated, pod=f"default/{name}")

    def is_removed() -> bool:
        return not of_pod(node, failed.uid) and not any(failed.uid in one for one in endpoints(node))

    node.journal.wait_for("the removal of the sandbox", is_removed)
    return failed.uid


def of_pod(node: Node, uid: str) -> list[dict[str, Any]]:
    """Return the pod's containers, in any state."""
    return list(node.docker.containers(all=True, filters={"label": f"{labels.POD_UID}={uid}"}))


def endpoints(node: Node) -> list[str]:
    """Return the names of all endpoints in Docker's network `bridge`."""
    return [one["Name"] for one in node.docker.inspect_network("bridge")["Containers"].values()]


def with_port_range(value: str) -> dict[str, Any]:
    sysctls = [{"name": "net.ipv4.ip_local_port_range", "value": value}]
    return a_pod("narrow", shell("app"), shell("side"), securityContext={"sysctls": sysctls})


def test_a_sandbox_with_a_bad_sysctl_is_removed_and_starts_once_it_is_corrected(node: Node) -> None:
    node.write("narrow.yaml", with_port_range("nonsense"))
    wait_for_failed_sandbox(node, "narrow")
    node.write("narrow.yaml", with_port_range("2000 3000"))
    node.wait_until_running("narrow")
    uid = node.journal.pods["default/narrow"].uid
    assert sorted(one["State"] for one in of_pod(node, uid)) == ["running"] * 3


def test_a_pod_removed_while_its_sandbox_fails_leaves_nothing(node: Node) -> None:
    path = node.write("narrow.yaml", with_port_range("nonsense"))
    uid = wait_for_failed_sandbox(node, "narrow")
    path.unlink()
    node.wait_until_gone("narrow")
    assert of_pod(node, uid) == []
    assert not [one for one in endpoints(node) if uid in one]
    assert not list(node.root.rglob(f"*{uid}*"))


def test_a_container_name_in_use_is_reported_and_waited_for(node: Node) -> None:
    node.write("named.yaml", a_pod("named"))
    node.wait_until_running("named")
    written = node.running("named")["app"]
    held = node.docker.create_container(
        BUSYBOX, ["true"], name=f"{written['Name'].rpartition('_')[0].removeprefix('/')}_1", labels={"by": "hand"}
    )
    node.kill_process("named", "app")
    refused = node.journal.wait_for_event(pod.ContainerStartFailed, pod="default/named")
    assert refused.reason == "CreateContainerError"
    assert f"the name is held by container {held['Id']}" in refused.message
    assert node.docker.inspect_container(held["Id"])["Config"]["Labels"] == {"by": "hand"}
    node.docker.remove_container(held["Id"])
    node.wait_until_running("named")
    started = node.journal.events(pod.ContainerStarted, pod="default/named")
    assert [one.attempt for one in started] == [0, 1]


def test_a_privileged_container_runs_or_reports_what_the_node_lacks(node: Node) -> None:
    node.write("mighty.yaml", a_pod("mighty", shell("app", securityContext={"privileged": True})))
    node.journal.wait_for(
        "its start or its failure",
        lambda: (
            node.journal.events(pod.ContainerStarted, pod="default/mighty")
            or node.journal.events(pod.ContainerStartFailed, pod="default/mighty")
        ),
    )
    for failed in node.journal.events(pod.ContainerStartFailed, pod="default/mighty"):
        assert failed.reason == "RunContainerError"
        assert "this node cannot give CAP_" in failed.message


def test_run_as_non_root_refuses_root(node: Node) -> None:
    context = {"runAsNonRoot": True}
    node.write("humble.yaml", a_pod("humble", shell("app"), securityContext=context))
    node.wait_for_status("humble", "CreateContainerConfigError")
    assert "container has runAsNonRoot and image will run as root" in node.chronolet("describe", "pod", "humble").out
    chosen = {"label": [f"{labels.NODE}={node.name}", f"{labels.POD_NAME}=humble", f"{labels.CONTAINER_NAME}=app"]}
    assert node.docker.containers(all=True, filters=chosen) == []
