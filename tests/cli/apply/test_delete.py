"""`delete`: which pods it selects, their grace period, and the wait until they have ended."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from chronolet_schemas import manifests, pod
from chronolet_schemas.envelope import Command, Event
from tests.cli.support.agent import Agent, Behaviour
from tests.cli.support.histories import UID, accepted
from tests.cli.support.written_node import NOON, WrittenNode
from tests.support.scratch import HANG_SECONDS

WEB = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: busybox}]}\n"


@pytest.fixture
def node() -> WrittenNode:
    return WrittenNode()


def withdrawn(name: str) -> manifests.PodWithdrawn:
    return manifests.PodWithdrawn(pod=f"default/{name}", uid=f"uid-{name}", source="apply")


def test_delete_waits_until_all_pods_have_ended(node: WrittenNode, agent: Callable[[Behaviour], Agent]) -> None:
    def behave(command: Command) -> Sequence[Event]:
        return [withdrawn("web"), withdrawn("db")]

    def end() -> None:
        # An earlier pod of the same name ends, then one of the two pods. Neither completes the wait.
        node.write("pod/default/web", pod.PodEnded(pod="default/web", uid="an earlier pod"))
        node.write("pod/default/web", pod.PodEnded(pod="default/web", uid="uid-web"))
        assert command.is_alive()
        node.write("pod/default/db", pod.PodEnded(pod="default/db", uid="uid-db"))

    answering = agent(behave)
    answering.after_answer = end
    results = []
    command = threading.Thread(
        target=lambda: results.append(node.run("delete", "pod", "web", "db", "--grace-period", "3"))
    )
    command.daemon = True
    command.start()
    command.join(timeout=HANG_SECONDS)
    assert results == [("pod/web deleted\npod/db deleted\n", "", 0)]
    sent = answering.received[0]
    assert isinstance(sent, manifests.DeletePods)
    assert (sent.pods, sent.grace_period_seconds) == (("default/web", "default/db"), 3)


@pytest.mark.parametrize(
    ("flags", "grace"),
    [([], None), (["--grace-period", "-1"], None), (["--force"], 0), (["--now"], 1), (["--grace-period=0"], 1)],
)
def test_flags_set_the_grace_period_of_a_delete_that_does_not_wait(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], flags: list[str], grace: int | None
) -> None:
    answering = agent(lambda _: [withdrawn("web")])
    assert node.run("delete", "pod/web", "--no-wait", *flags) == ("pod/web deleted\n", "", 0)
    sent = answering.received[0]
    assert isinstance(sent, manifests.DeletePods)
    assert sent.grace_period_seconds == grace


@pytest.mark.parametrize(
    ("flags", "grace"),
    [(["--wait=false"], None), (["--wait=true", "--force"], 0), (["--wait=False", "--force=false"], None)],
)
def test_delete_accepts_kubectls_spelling_of_flags(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], flags: list[str], grace: int | None
) -> None:
    answering = agent(lambda _: [withdrawn("web")])
    assert node.run("delete", *flags, "pod/web") == ("pod/web deleted\n", "", 0)
    sent = answering.received[0]
    assert isinstance(sent, manifests.DeletePods)
    assert sent.grace_period_seconds == grace


def ending(name: str) -> Sequence[Event]:
    begun = accepted(name)
    ends = pod.TerminationRequested(
        pod=begun.pod, uid=begun.uid, reason="Deleted", grace_period_seconds=30, deadline=NOON + 30_000
    )
    return [begun, ends]


def test_a_delete_of_a_terminating_pod_shortens_its_grace_period(
    node: WrittenNode, agent: Callable[[Behaviour], Agent]
) -> None:
    node.write("pod/default/web", *ending("web"))
    sooner = manifests.PodWithdrawn(pod="default/web", uid=UID, source="apply", grace_period_seconds=1)
    answering = agent(lambda _: [sooner])
    # The pod may end before the answer arrives.
    answering.before_answer = lambda: node.write("pod/default/web", pod.PodEnded(pod="default/web", uid=UID))
    assert node.run("delete", "pod", "web", "--now") == ("pod/web deleted\n", "", 0)
    sent = answering.received[0]
    assert isinstance(sent, manifests.DeletePods)
    assert (sent.ending, sent.grace_period_seconds) == ({"default/web": UID}, 1)


def test_a_delete_that_covers_a_pod_and_its_waiting_successor_ends_with_the_pod(
    node: WrittenNode, agent: Callable[[Behaviour], Agent]
) -> None:
    node.write("pod/default/web", *ending("web"))
    both = [manifests.PodWithdrawn(pod="default/web", uid=uid, source="apply") for uid in (UID, "successor")]
    answering = agent(lambda _: both)

    def end() -> None:
        node.write("pod/default/web", pod.SuccessorAwaits(pod="default/web", uid=UID, successor=None))
        node.write("pod/default/web", pod.PodEnded(pod="default/web", uid=UID))

    answering.after_answer = end
    assert node.run("delete", "pod", "web") == ("pod/web deleted\n", "", 0)


def test_delete_gives_up_after_its_timeout(node: WrittenNode, agent: Callable[[Behaviour], Agent]) -> None:
    agent(lambda _: [withdrawn("web"), withdrawn("db")])
    result = node.run("delete", "pod", "web", "db", "--timeout", "300ms")
    late = "error: timed out waiting for the condition on pods/"
    assert result == ("", f"{late}web\n{late}db\n", 1)


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["--all"], ("default/db", "default/web")),
        (["pods", "--all"], ("default/db", "default/web")),
        (["--all", "-n", "other"], ("other/web",)),
        (["--all", "-A"], ("default/db", "default/web", "other/web")),
        (["-l", "tier in (front, back),app!=db"], ("default/web",)),
        (["-A", "--field-selector", "metadata.name=web"], ("default/web", "other/web")),
    ],
)
def test_delete_covers_the_selected_pods(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], words: list[str], keys: tuple[str, ...]
) -> None:
    for namespace, name in (("default", "web"), ("default", "db"), ("other", "web")):
        begun = accepted(name, namespace)
        labels = {"app": name, "tier": "front"}
        metadata = msgspec.structs.replace(begun.manifest.metadata, labels=labels)
        spec = msgspec.structs.replace(begun.manifest, metadata=metadata)
        node.write(f"pod/{namespace}/{name}", msgspec.structs.replace(begun, manifest=spec))
    answering = agent(lambda command: [manifests.PodWithdrawn(pod=key, uid="u", source="apply") for key in keys])
    result = node.run("delete", *words, "--wait=false", "-o", "name")
    assert result == ("".join(f"pod/{key.partition('/')[2]}\n" for key in keys), "", 0)
    sent = answering.received[0]
    assert isinstance(sent, manifests.DeletePods)
    assert sent.pods == keys


def test_an_empty_selection_deletes_nothing(node: WrittenNode) -> None:
    assert node.run("delete", "pods", "--all") == ("", "No resources found.\n", 0)


def test_a_missing_pod_is_an_error_unless_ignored(node: WrittenNode, agent: Callable[[Behaviour], Agent]) -> None:
    reason = 'pods "default/web" not found'
    agent(lambda _: [manifests.PodRefused(pod="default/web", source="apply", reason=reason)])
    assert node.run("delete", "pod/web") == ("", 'Error from server (NotFound): pods "web" not found\n', 1)
    assert node.run("delete", "pod/web", "--ignore-not-found") == ("", "", 0)


@pytest.mark.parametrize(
    "words",
    [
        ["pod/web", "--now", "--grace-period", "3"],
        ["pod/web", "--force", "--grace-period", "3"],
        ["pod/web", "--all"],
        ["pod/web", "-A"],
        ["-l", "a=b", "-f", "x"],
        ["-l", "a~b"],
        ["--field-selector", "spec.containers=x"],
        ["--field-selector", "status.phase"],
    ],
)
def test_invalid_combinations_of_flags_are_usage_errors(node: WrittenNode, words: list[str]) -> None:
    assert node.run("delete", *words).status == 2


def test_delete_by_file_of_a_missing_pod_is_not_found(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    refused = manifests.PodRefused(pod="default/web", source="apply", reason="not found")
    file = tmp_path / "web.yaml"
    file.write_text(WEB)
    agent(lambda _: [refused])
    result = node.run("delete", "-f", str(file))
    assert result == ("", 'Error from server (NotFound): pods "web" not found\n', 1)
