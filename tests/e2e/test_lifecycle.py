"""Init containers, sidecars, hooks and ends of pods: real agent, real Docker, real Redis."""

from chronolet_schemas import pod
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod

_STAYS = "trap 'exit 0' TERM; sleep 3600 & wait"


def test_init_containers_run_in_order_and_a_sidecar_outlives_the_work(node: Node) -> None:
    mounts = {"volumeMounts": [{"name": "work", "mountPath": "/work"}]}
    node.write(
        "ordered.yaml",
        a_pod(
            "ordered",
            shell(
                "app", "echo app >> /work/order; cat /work/order; while [ ! -e /work/go ]; do sleep 0.1; done", **mounts
            ),
            initContainers=[
                shell("first", "echo first >> /work/order", **mounts),
                shell("proxy", f"echo proxy >> /work/order; {_STAYS}", restartPolicy="Always", **mounts),
                shell("second", "echo second >> /work/order; sleep 1", **mounts),
            ],
            volumes=[{"name": "work", "emptyDir": {}}],
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
    docker.exec_start(docker.exec_create(node.running("ordered")["app"]["Id"], ["touch", "/work/go"])["Id"])
    node.wait_for_column("ordered", "Completed")
    stopped = node.journal.events(pod.ContainerStopRequested, pod="default/ordered")
    assert [(one.container, one.reason) for one in stopped] == [("proxy", "PodCompleted")]
    node.journal.wait_for("the end of the sandbox", lambda: not node.running("ordered"))


def test_an_init_container_that_fails_holds_its_pod_back(node: Node) -> None:
    node.write("held.yaml", a_pod("held", initContainers=[shell("first", "exit 3")]))
    node.wait_for_column("held", "Init:CrashLoopBackOff")
    assert "app" not in node.running("held")
    never = a_pod("never", initContainers=[shell("first", "exit 3")], restartPolicy="Never")
    node.write("never.yaml", never)
    node.wait_for_column("never", "Init:Error")
    assert not node.journal.events(pod.ContainerStartRequested, pod="default/never", container="app")
