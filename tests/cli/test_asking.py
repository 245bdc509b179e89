"""`apply`: the command in the mailbox, its answer in the log, refusals, and an agent that is missing or has exited."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chronolet.cli.sending import MANIFESTS
from chronolet.cli.services import Timing
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.manifests.identity import applied_uid
from chronolet_schemas import kernel, manifests
from chronolet_schemas.envelope import START, Command, Event, Mail, Position
from tests.cli.support.agent import Agent, Behaviour
from tests.cli.support.written_node import SHORT, WrittenNode
from tests.support.scratch import HANG_SECONDS

WEB = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: busybox}]}\n"
DB = WEB.replace("web", "db")


def pods_of(command: Command) -> list[str]:
    """Return the names of the pods in an `apply` command."""
    assert isinstance(command, manifests.ApplyPods)
    return [one.metadata.name for one in command.pods]


@pytest.fixture
def node() -> WrittenNode:
    return WrittenNode(timing=SHORT)


def applied(command: Command, name: str, uid: str = "") -> manifests.PodApplied:
    assert isinstance(command, manifests.ApplyPods)
    key = f"default/{name}"
    manifest = next(one for one in command.pods if one.key == key)
    own = applied_uid(request=command.request, pod=key)
    return manifests.PodApplied(pod=key, uid=uid or own, source="apply", digest="d", manifest=manifest)


def write(folder: Path, text: str) -> str:
    path = folder / "pods.yaml"
    path.write_text(text)
    return str(path)


def test_apply_prints_the_result_for_each_pod(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    def behave(command: Command) -> list[Event]:
        return [
            applied(command, "web"),
            applied(command, "db", uid="older"),
            manifests.ApplyUnchanged(pod="default/third"),
        ]

    answering = agent(behave)
    result = node.run("apply", "-f", write(tmp_path, f"{WEB}---\n{DB}---\n{WEB.replace('web', 'third')}"))
    assert result == ("pod/web created\npod/db configured\npod/third unchanged\n", "", 0)
    assert len(answering.received) == 1, "one command for all pods: one step"


def test_apply_reads_standard_input_and_folders(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    agent(lambda command: [applied(command, name) for name in pods_of(command)])
    assert node.run("apply", "-f", "-", stdin=WEB.encode()).output == "pod/web created\n"
    (tmp_path / "b.yaml").write_text(WEB)
    (tmp_path / "a.yml").write_text(DB)
    (tmp_path / "README.md").write_text("no manifest")
    assert node.run("apply", "-f", str(tmp_path), "-o", "name").output == "pod/db\npod/web\n"


def test_a_refusal_is_an_error_and_the_other_results_are_printed(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    def behave(command: Command) -> list[Event]:
        refused = manifests.PodRefused(pod="default/db", source="apply", reason="file:/etc/pods/db.yaml has this name")
        return [applied(command, "web"), refused]

    agent(behave)
    result = node.run("apply", "-f", write(tmp_path, f"{WEB}---\n{DB}"))
    assert result == ("pod/web created\n", "error: pod default/db: file:/etc/pods/db.yaml has this name\n", 1)


def test_an_invalid_document_prevents_the_whole_apply(node: WrittenNode, tmp_path: Path) -> None:
    result = node.run("apply", "-f", write(tmp_path, f"{WEB}---\n{DB.replace('image: busybox', 'image: 5')}"))
    assert (result.status, result.output) == (1, "")
    assert result.errors.startswith(f"error: {tmp_path}/pods.yaml: document 2: spec.containers[0].image: ")
    assert node.server.shard(MANIFESTS).mail == []


def test_the_same_pod_twice_is_refused(node: WrittenNode, tmp_path: Path) -> None:
    file = write(tmp_path, WEB)
    result = node.run("apply", "-f", file, "-f", file)
    assert result.status == 1
    assert result.errors == f"error: {file}: pod default/web: also defined in {file}, expected it once\n"


def test_findings_are_warnings_and_errors_with_strict(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    agent(lambda command: [applied(command, name) for name in pods_of(command)])
    file = write(tmp_path, WEB.replace("image: busybox", "image: busybox, volumeDevices: [{name: raw}], frobnicate: 1"))
    result = node.run("apply", "-f", file)
    assert (result.status, result.output) == (0, "pod/web created\n")
    assert sorted(line.split(": ")[2] for line in result.errors.splitlines()) == [
        "spec.containers[0].frobnicate",
        "spec.containers[0].volumeDevices",
    ]
    strict = node.run("apply", "-f", file, "--strict")
    assert (strict.status, strict.output) == (1, "")
    assert [line.split(": ")[0] for line in strict.errors.splitlines()] == ["error", "error"]


def test_without_an_agent_nothing_is_sent(node: WrittenNode, tmp_path: Path) -> None:
    result = node.run("apply", "-f", write(tmp_path, WEB))
    assert result.status == 1
    assert result.errors.startswith("error: no node agent has hosted `manifests` for ")
    assert "nothing was sent" in result.errors
    assert node.server.shard(MANIFESTS).mail == []


def test_an_owner_that_dies_before_it_answers_is_an_error(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    def die(command: Command) -> list[Event]:
        node.server.leases.clear()
        return []

    agent(die)
    result = node.run("apply", "-f", write(tmp_path, WEB))
    assert result.status == 1
    assert "stays in the mailbox until an agent runs again" in result.errors


def test_a_dead_lettered_command_is_an_error(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    def give_up(command: Command) -> list[Event]:
        about: dict[str, Any] = {"message": "manifests.ApplyPods@1", "source": "mailbox", "at": command.request}
        return [kernel.MessageDeadLettered(**about, tries=3, error="ZeroDivisionError: division by zero")]

    agent(give_up)
    result = node.run("apply", "-f", write(tmp_path, WEB))
    expected = "error: the node agent could not process manifests.ApplyPods@1: ZeroDivisionError: division by zero\n"
    assert result == ("", expected, 1)


def test_a_full_mailbox_is_an_error(node: WrittenNode, tmp_path: Path) -> None:
    Agent(node, lambda _: []).own()
    for number in range(10_000):
        node.server.shard(MANIFESTS).mail.append(Mail(node.server.last._replace(n=10**9 + number), "t", "e", "r", b""))
    result = node.run("apply", "-f", write(tmp_path, WEB))
    assert result.errors.startswith("error: the node's mailbox is full (10,000 commands)")


def test_apply_waits_for_a_node_that_is_starting(node: WrittenNode, agent: Callable[[Behaviour], Agent]) -> None:
    node.timing = Timing(patience_seconds=HANG_SECONDS, ownerless_seconds=HANG_SECONDS)
    log, last = list(node.server.log), node.server.last
    read = threading.Event()

    def begin() -> None:
        read.wait(HANG_SECONDS)
        with node.server.changed:
            node.server.log, node.server.last = log, last
        agent(lambda command: [applied(command, name) for name in pods_of(command)])

    class WatchedStore(MemoryStore):
        def last(self) -> Position:
            try:
                return super().last()
            finally:
                read.set()

    node.server.log, node.server.last = [], START
    node.open_store = lambda: WatchedStore(node.server)
    beginning = threading.Thread(target=begin)
    beginning.start()
    assert node.run("apply", "-f", "-", stdin=WEB.encode()) == ("pod/web created\n", "", 0)
    beginning.join()
