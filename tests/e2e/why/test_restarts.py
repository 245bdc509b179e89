"""`chronolet why` names the cause of restarts on real Docker.

Each container ended in another way, many of them with the same exit code, and each is asked about once it is gone and
the agent was restarted.
"""

from __future__ import annotations

from typing import Any

import pytest

from chronolet_schemas import pod as pods
from tests.e2e.node import BUSYBOX, Node, pod, shell
from tests.e2e.why.asking import FAILS, HUNG, first_sentence, forget, noticed, wrong

SMALL = {"limits": {"memory": "16Mi"}}
HOOK = {"postStart": {"exec": {"command": ["sh", "-c", "echo no licence; exit 4"]}}}
PODS: dict[str, dict[str, Any]] = {
    "live": shell("app", HUNG, livenessProbe=FAILS | {"terminationGracePeriodSeconds": 1}),
    "startup": shell("app", HUNG, startupProbe=FAILS | {"terminationGracePeriodSeconds": 1}),
    "oom": shell("app", "sleep 1; exec tail /dev/zero", resources=SMALL),
    "oomchild": shell("app", "sleep 1; (tail /dev/zero); exit 5", resources=SMALL),
    "killed": shell("app", HUNG),
    "halted": shell("app"),
    "restarted": shell("app"),
    "removed": shell("app", HUNG),
    "hostkill": shell("app", HUNG),
    "inside": shell("app", "trap 'exit 143' TERM; kill -TERM 1; sleep 3600"),
    "exit0": shell("app", "exit 0"),
    "exit1": shell("app", "echo no config file > /dev/termination-log; exit 1"),
    "exit137": shell("app", "exit 137"),
    "exit143": shell("app", "exit 143"),
    "crash": shell("app", "exit 139"),
    "hook": shell("app", HUNG, lifecycle=HOOK),
    "changed": shell("app"),
    "boxless": shell("app"),
}
ANSWERS: dict[str, tuple[str, ...]] = {
    "live": ("liveness probe failed 2 times", "failureThreshold 2", "code 7", "the queue is stuck", "SIGKILL", "137"),
    "startup": ("startup probe failed 2 times", "the queue is stuck", "SIGKILL", "137"),
    "oom": ("the kernel killed its main process for lack of memory", "16Mi", "137"),
    "oomchild": ("with code 5", "by itself", "the kernel killed one of its processes, not the main one"),
    "killed": ("someone sent it SIGKILL through Docker", "`docker kill`", "not chronolet", "137"),
    "halted": ("someone sent it SIGTERM through Docker", "`docker stop`", "not chronolet"),
    "restarted": ("someone sent it SIGTERM through Docker", "started it again", "`docker restart`"),
    "removed": ("someone sent it SIGKILL through Docker", "`docker rm -f`"),
    "hostkill": ("exit code 137", "`kill -9`", "exited with this code by itself", "no sign of an OOM kill", "!docker"),
    "inside": ("exit code 143", "of the host or of the container", "SIGTERM", "exited with this code by itself"),
    "exit0": ("exited by itself with code 0", "restartPolicy Always"),
    "exit1": ("exited by itself with code 1", "no config file"),
    "exit137": ("exit code 137", "`kill -9`", "exited with this code by itself", "!docker"),
    "exit143": ("exit code 143", "SIGTERM", "exited with this code by itself", "!docker"),
    "crash": ("exit code 139", "crashed with SIGSEGV", "or it exited with this code by itself"),
    "hook": ("postStart hook failed", "no licence", "chronolet stopped it"),
    "changed": ("manifest was changed by `chronolet apply`", "image: chronolet/busybox:1 -> busybox:again"),
    "boxless": ("the pod's sandbox died", "SIGKILL", "through Docker"),
}
UNNOTICED: dict[str, tuple[str, ...]] = {
    "killed": ("exit code 137", "someone sent SIGKILL through Docker (`docker kill`)", "`kill -9`"),
    "halted": ("through Docker",),
    "restarted": ("through Docker",),
    "removed": ("Docker",),
    "hostkill": ("exit code 137", "`kill -9`", "exited with this code by itself", "no sign of an OOM kill"),
    "exit0": ("exited with code 0", "by itself, or because it was stopped through Docker", "restartPolicy Always"),
    "exit1": ("exited with code 1", "by itself, or because it was stopped through Docker", "no config file"),
    "exit137": ("exit code 137", "`kill -9`", "exited with this code by itself"),
    "exit143": ("exit code 143", "SIGTERM", "exited with this code by itself"),
    "boxless": ("the pod's sandbox died",),
}
"""The answers of those pods whose death a listing found: who called Docker is then not known."""


@pytest.fixture(scope="module")
def restarted(node: Node) -> Node:
    """The node, once each of the pods has restarted for its reason, its dead containers are removed, and its agent has
    been restarted.
    """
    for name, container in PODS.items():
        if name != "changed":
            node.write(f"{name}.yaml", pod(name, container))
    apply(node, PODS["changed"])
    node.docker.tag(BUSYBOX, "busybox", "again")
    steady = ("killed", "halted", "restarted", "removed", "hostkill", "changed", "boxless")
    node.wait_until_running(*steady)
    ids = {name: node.running(name)["app"]["Id"] for name in steady}
    node.docker.kill(ids["killed"])
    node.docker.stop(ids["halted"], timeout=30)
    node.docker.restart(ids["restarted"], timeout=30)
    node.docker.remove_container(ids["removed"], force=True)
    node.kill_process("hostkill", "app")
    node.docker.kill(node.running("boxless")["POD"]["Id"])
    apply(node, PODS["changed"] | {"image": "busybox:again"})
    for name in PODS:
        node.journal.wait_for_event(pods.ContainerStarted, 60, pod=f"default/{name}", container="app", attempt=1)
    forget(node)
    return node


def apply(node: Node, container: dict[str, Any]) -> None:
    result = node.chronolet("apply", "-f", node.write_unwatched("changed.yaml", pod("changed", container)))
    assert result.status == 0, result


@pytest.mark.parametrize("name", PODS)
def test_the_first_sentence_names_the_cause(restarted: Node, name: str) -> None:
    sentence = first_sentence(restarted, name, "--nth", "1")
    assert f"container app of default/{name} was restarted (restart 1, " in sentence
    seen = noticed(restarted, name, "POD" if name == "boxless" else "app")
    expected = ANSWERS[name] if seen else UNNOTICED.get(name, ANSWERS[name])
    if not restarted.journal.events(pods.ExitRead, pod=f"default/{name}", attempt=0):
        # On a busy machine, the next attempt may begin before the message of a dead container is read.
        expected = tuple(text for text in expected if text != "no config file")
    assert wrong(sentence, expected) == [], sentence


def test_three_restarts_with_the_same_exit_code_have_three_answers(restarted: Node) -> None:
    names = ("live", "oom", "killed")
    exits = [restarted.journal.wait_for_event(pods.ContainerExited, pod=f"default/{name}") for name in names]
    assert [one.exit_code for one in exits] == [137, 137, 137]
    reasons = {first_sentence(restarted, name, "--nth", "1").partition(" because ")[2] for name in names}
    assert len(reasons) == 3
