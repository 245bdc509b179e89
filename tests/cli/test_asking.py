"""`apply` and `delete`: sent to the mailbox, answered in the log; nobody there, nobody any more, refusals."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chronolet.cli import asking, session
from chronolet.cli.asking import MANIFESTS
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.manifests.identity import applied_uid
from chronolet_schemas import kernel, manifests
from chronolet_schemas.envelope import START, Command, Event, Mail, Position
from tests.cli import written
from tests.cli.agent import Agent, Behaviour
from tests.cli.written import WrittenNode
from tests.support.scratch import HANG_SECONDS

WEB = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: busybox}]}\n"
DB = WEB.replace("web", "db")


def asked_for(command: Command) -> list[str]:
    """The names of the pods that an `apply` has sent."""
    assert isinstance(command, manifests.ApplyPods)
    return [one.metadata.name for one in command.pods]


@pytest.fixture
def node() -> WrittenNode:
    return WrittenNode()


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "OWNERLESS_SECONDS", 0.3)
    monkeypatch.setattr(session, "PATIENCE_SECONDS", 0.3)


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


def test_apply_says_what_became_of_each_pod(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    def behave(command: Command) -> list[Event]:
        return [
            applied(command, "web"),
            applied(command, "db", uid="older"),
            manifests.ApplyUnchanged(pod="default/third"),
        ]

    answering = agent(behave)
    said = node.run("apply", "-f", write(tmp_path, f"{WEB}---\n{DB}---\n{WEB.replace('web', 'third')}"))
    assert said == ("pod/web created\npod/db configured\npod/third unchanged\n", "", 0)
    assert len(answering.seen) == 1, "one command for all pods: one step"


def test_apply_reads_standard_input_and_folders(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    agent(lambda command: [applied(command, name) for name in asked_for(command)])
    assert node.run("apply", "-f", "-", stdin=WEB.encode()).out == "pod/web created\n"
    (tmp_path / "b.yaml").write_text(WEB)
    (tmp_path / "a.yml").write_text(DB)
    (tmp_path / "README.md").write_text("no manifest")
    assert node.run("apply", "-f", str(tmp_path), "-o", "name").out == "pod/db\npod/web\n"


def test_a_refusal_is_an_error_beside_what_was_done(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    def behave(command: Command) -> list[Event]:
        refused = manifests.PodRefused(pod="default/db", source="apply", reason="file:/etc/pods/db.yaml has this name")
        return [applied(command, "web"), refused]

    agent(behave)
    said = node.run("apply", "-f", write(tmp_path, f"{WEB}---\n{DB}"))
    assert said == ("pod/web created\n", "error: pod default/db: file:/etc/pods/db.yaml has this name\n", 1)


def test_one_bad_document_and_nothing_is_sent(node: WrittenNode, tmp_path: Path) -> None:
    said = node.run("apply", "-f", write(tmp_path, f"{WEB}---\n{DB.replace('image: busybox', 'image: 5')}"))
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith(f"error: {tmp_path}/pods.yaml: document 2: spec.containers[0].image: ")
    assert node.server.shard(MANIFESTS).mail == []


def test_the_same_pod_twice_is_refused(node: WrittenNode, tmp_path: Path) -> None:
    file = write(tmp_path, WEB)
    said = node.run("apply", "-f", file, "-f", file)
    assert said.status == 1
    assert said.err == f"error: {file}: pod default/web: also defined in {file}, expected it once\n"


def test_findings_are_told_and_strict_refuses_them(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    agent(lambda command: [applied(command, name) for name in asked_for(command)])
    file = write(tmp_path, WEB.replace("image: busybox", "image: busybox, volumeDevices: [{name: raw}], frobnicate: 1"))
    said = node.run("apply", "-f", file)
    assert (said.status, said.out) == (0, "pod/web created\n")
    assert sorted(line.split(": ")[2] for line in said.err.splitlines()) == [
        "spec.containers[0].frobnicate",
        "spec.containers[0].volumeDevices",
    ]
    strict = node.run("apply", "-f", file, "--strict")
    assert (strict.status, strict.out) == (1, "")
    assert [line.split(": ")[0] for line in strict.err.splitlines()] == ["error", "error"]


def test_nobody_there_is_said_and_nothing_is_sent(node: WrittenNode, tmp_path: Path) -> None:
    said = node.run("apply", "-f", write(tmp_path, WEB))
    assert said.status == 1
    assert said.err.startswith("error: no node agent has hosted `manifests` for ")
    assert "nothing was sent" in said.err
    assert node.server.shard(MANIFESTS).mail == []


def test_an_owner_that_dies_before_answering_is_said(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    def die(command: Command) -> list[Event]:
        node.server.leases.clear()
        return []

    agent(die)
    said = node.run("apply", "-f", write(tmp_path, WEB))
    assert said.status == 1
    assert "stays in the mailbox until an agent runs again" in said.err


def test_a_command_that_the_agent_gave_up_is_an_error(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    def give_up(command: Command) -> list[Event]:
        about: dict[str, Any] = {"message": "manifests.ApplyPods@1", "source": "mailbox", "at": command.request}
        return [kernel.MessageDeadLettered(**about, tries=3, error="ZeroDivisionError: division by zero")]

    agent(give_up)
    said = node.run("apply", "-f", write(tmp_path, WEB))
    expected = "error: the node agent could not process manifests.ApplyPods@1: ZeroDivisionError: division by zero\n"
    assert said == ("", expected, 1)


def test_a_full_mailbox_is_an_error(node: WrittenNode, tmp_path: Path) -> None:
    Agent(node, lambda _: []).own()
    for number in range(10_000):
        node.server.shard(MANIFESTS).mail.append(Mail(node.server.last._replace(n=10**9 + number), "t", "e", "r", b""))
    said = node.run("apply", "-f", write(tmp_path, WEB))
    assert said.err.startswith("error: the node's mailbox is full (10,000 commands)")


def test_a_node_that_is_just_starting_is_waited_for(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PATIENCE_SECONDS", HANG_SECONDS)
    monkeypatch.setattr(asking, "OWNERLESS_SECONDS", HANG_SECONDS)
    log, last = list(node.server.log), node.server.last
    asked = threading.Event()

    def begin() -> None:
        asked.wait(HANG_SECONDS)
        with node.server.changed:
            node.server.log, node.server.last = log, last
        agent(lambda command: [applied(command, name) for name in asked_for(command)])

    class Watched(MemoryStore):
        def last(self) -> Position:
            try:
                return super().last()
            finally:
                asked.set()

    node.server.log, node.server.last = [], START
    monkeypatch.setattr(written, "MemoryStore", Watched)
    beginning = threading.Thread(target=begin)
    beginning.start()
    assert node.run("apply", "-f", "-", stdin=WEB.encode()) == ("pod/web created\n", "", 0)
    beginning.join()


def test_a_node_that_never_ran_is_said(node: WrittenNode) -> None:
    node.server.log, node.server.last = [], START
    said = node.run("delete", "pod/web")
    assert said.status == 1
    assert said.err.startswith("error: node node-1 has no log at unix:///none: start its agent")
