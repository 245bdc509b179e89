"""Init containers, sidecars, hooks and ends of pods: real agent, real Docker, real Redis."""

import math
import time
from typing import Any

from chronolet_schemas import pod
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod

_SLEEPS = "sleep 3600 & wait"
_STAYS = f"trap 'exit 0' TERM; {_SLEEPS}"


def test_init_containers_run_in_order_and_a_sidecar_outlives_the_containers(node: Node) -> None:
    mounts = {"volumeMounts": [{"name": "seen", "mountPath": "/seen"}]}
    node.write(
        "ordered.yaml",
        a_pod(
            "ordered",
            shell(
                "app",
                "echo app >> /seen/order; cat /seen/order; while [ ! -e /seen/go ]; do sleep 0.1; done",
                **mounts,
            ),
            initContainers=[
                shell("first", "echo first >> /seen/order", **mounts),
                shell("proxy", f"echo proxy >> /seen/order; {_STAYS}", restartPolicy="Always", **mounts),
                shell("second", "echo second >> /seen/order; sleep 1", **mounts),
            ],
            volumes=[{"name": "seen", "emptyDir": {}}],
            restartPolicy="OnFailure",
        ),
    )
    node.wait_until_running("ordered")
    assert node.chronolet("get", "pods").line("ordered").split()[1:4] == ["2/2", "Running", "0"]
    node.journal.wait_for("the app's output", lambda: node.output("ordered", "app").split()[-1:] == ["app"])
    assert node.output("ordered", "app").split() == ["first", "proxy", "second", "app"]

    node.kill_process("ordered", "proxy")
    node.journal.wait_for_event(pod.ContainerStarted, pod="default/ordered", container="proxy", attempt=1)
    docker = node.docker
    docker.exec_start(docker.exec_create(node.running("ordered")["app"]["Id"], ["touch", "/seen/go"])["Id"])
    node.wait_for_status_column("ordered", "Completed")
    stopped = node.journal.events(pod.ContainerStopRequested, pod="default/ordered")
    assert [(one.container, one.reason) for one in stopped] == [("proxy", "PodCompleted")]
    node.journal.wait_for("the end of the sandbox", lambda: not node.running("ordered"))


def test_a_failing_init_container_delays_its_pod(node: Node) -> None:
    node.write("held.yaml", a_pod("held", initContainers=[shell("first", "exit 3")]))
    node.wait_for_status_column("held", "Init:CrashLoopBackOff")
    assert "app" not in node.running("held")
    never = a_pod("never", initContainers=[shell("first", "exit 3")], restartPolicy="Never")
    node.write("never.yaml", never)
    node.wait_for_status_column("never", "Init:Error")
    assert not node.journal.events(pod.ContainerStartRequested, pod="default/never", container="app")


def test_a_hook_runs_once_even_if_the_agent_is_killed_meanwhile(node: Node) -> None:
    written = node.root / "written"
    written.mkdir()
    mounts = {"volumeMounts": [{"name": "written", "mountPath": "/written"}]}

    def hook(name: str) -> dict[str, Any]:
        """Return a hook that ends once its file exists."""
        waits = f"while [ ! -e /written/go-{name} ]; do sleep 0.1; done"
        script = f"echo began >> /written/{name}; {waits}; echo ended >> /written/{name}"
        return {"exec": {"command": ["sh", "-c", script]}}

    hooks = {"postStart": hook("after"), "preStop": hook("before")}
    one = a_pod(
        "hooked",
        shell(
            "app", f"trap 'echo term >> /written/before; exit 0' TERM; echo ready; {_SLEEPS}", lifecycle=hooks, **mounts
        ),
        shell("later", f"trap 'exit 0' TERM; date > /written/later; {_SLEEPS}", **mounts),
        volumes=[{"name": "written", "hostPath": {"path": str(written)}}],
        terminationGracePeriodSeconds=600,
    )
    node.write("hooked.yaml", one)
    node.journal.wait_for_event(pod.HookPrepared, pod="default/hooked", hook="PostStart")
    node.journal.wait_for("the hook's first line", (written / "after").exists)
    node.kill9()
    (written / "go-after").touch()
    node.start()
    node.wait_until_running("hooked")
    assert (written / "after").read_text().split() == ["began", "ended"]
    assert node.journal.events(pod.HookEnded, hook="PostStart")[0].outcome == "Succeeded"

    node.wait_for_output("hooked", "app", "ready")
    (node.folder / "hooked.yaml").unlink()
    node.journal.wait_for("the hook's first line", (written / "before").exists)
    node.kill9()
    (written / "go-before").touch()
    node.start()
    node.wait_until_gone("hooked")
    assert (written / "before").read_text().split() == ["began", "ended", "term"]


def test_a_failing_hook_ends_its_container_and_a_hanging_one_ends_with_the_grace_period(node: Node) -> None:
    fails = {"postStart": {"exec": {"command": ["no-such-command"]}}}
    node.write("fails.yaml", a_pod("fails", shell("app", lifecycle=fails)))
    node.wait_for_status_column("fails", "CrashLoopBackOff")
    failed = "PostStartHook failed"
    node.journal.wait_for(failed, lambda: failed in node.chronolet("describe", "pod", "fails").out)

    hangs = {"preStop": {"exec": {"command": ["sleep", "3600"]}}}
    node.write("hangs.yaml", a_pod("hangs", shell("app", lifecycle=hangs), terminationGracePeriodSeconds=3))
    node.wait_until_running("hangs")
    (node.folder / "hangs.yaml").unlink()
    node.wait_until_gone("hangs")
    assert [one.outcome for one in node.journal.events(pod.HookEnded, pod="default/hangs")] == ["Unfinished"]


def test_a_pod_past_its_deadline_fails_with_its_termination_message(node: Node) -> None:
    # While the container runs, the column shows why the pod has failed; afterwards, how its container ended.
    ends = "until [ -e /tmp/seen ]; do sleep 0.1; done; echo -n out of time > /dev/termination-log; exit 7"
    late = a_pod("late", shell("app", f"trap '{ends}' TERM; echo ready; {_SLEEPS}"), terminationGracePeriodSeconds=600)
    assert node.chronolet("apply", "-f", node.write_unwatched("late.yaml", late)).status == 0
    node.wait_until_running("late")
    node.wait_for_output("late", "app", "ready")
    # The deadline is set only now: if it were set from the beginning, it might pass before the trap is set.
    passed = math.ceil(time.time() - node.journal.pods["default/late"].accepted_at / 1000)
    late["spec"]["activeDeadlineSeconds"] = passed + 2
    assert node.chronolet("apply", "-f", node.write_unwatched("late.yaml", late)).out == "pod/late configured\n"
    node.wait_for_status_column("late", "DeadlineExceeded")
    docker = node.docker
    docker.exec_start(docker.exec_create(node.running("late")["app"]["Id"], ["touch", "/tmp/seen"])["Id"])
    node.journal.wait_for_event(pod.ExitRead, pod="default/late", message="out of time")
    node.journal.wait_for("the end of the sandbox", lambda: not node.running("late"))
    described = node.chronolet("describe", "pod", "late").out
    for words in ("Status:           Failed", "Reason:           DeadlineExceeded", "out of time", "Exit Code:    7"):
        assert words in described, described
