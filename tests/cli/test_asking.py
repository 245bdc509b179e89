"""`apply` and `delete`: sent to the mailbox, answered in the log; nobody there, nobody any more, refusals."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chronolet.cli import asking, session
from chronolet.cli.asking import MANIFESTS
from chronolet.kernel.memory_store import MemoryStore
from chronolet.manifests.identity import applied_uid
from chronolet_schemas import codec, kernel, manifests, pod
from chronolet_schemas.envelope import START, Command, Event, Mail, Position
from tests.cli import written
from tests.cli.written import WrittenNode

WEB = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: busybox}]}\n"
DB = WEB.replace("web", "db")


def asked_for(command: Command) -> list[str]:
    """The names of the pods that an `apply` has sent."""
    assert isinstance(command, manifests.ApplyPods)
    return [one.metadata.name for one in command.pods]


Behaviour = Callable[[Command], list[Event]]


class Agent:
    """A process that owns `manifests` and answers as it is told."""

    def __init__(self, node: WrittenNode, behaviour: Behaviour) -> None:
        self.node = node
        self.behaviour = behaviour
        self.seen: list[Command] = []
        self.store = MemoryStore(node.server)
        self.ended = False
        self.afterwards: Callable[[], None] = lambda: None
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def own(self) -> None:
        self.store.renew("p1", "", 60_000)
        self.store.acquire(MANIFESTS, "", "p1", 1, proven_dead=False)

    def start(self) -> None:
        self.own()
        self.thread.start()

    def stop(self) -> None:
        self.ended = True
        self.store.wake()
        self.thread.join()

    def serve(self) -> None:
        done = self.store.heads((MANIFESTS,))[MANIFESTS].mail_cursor
        while not self.ended:
            inputs = self.store.wait(self.store.last(), {MANIFESTS: done}, 10, 50)
            for mail in inputs.mail.get(MANIFESTS, ()):
                done = mail.id
                self.answer(mail)

    def answer(self, mail: Mail) -> None:
        command = codec.decode(mail.type, mail.data, Command)
        assert mail.request == command.request
        self.seen.append(command)
        self.node.write(mail.entity, *self.behaviour(command), cause=command.request)
        self.afterwards()


@pytest.fixture
def node() -> WrittenNode:
    return WrittenNode()


@pytest.fixture
def agent(node: WrittenNode) -> Iterator[Callable[[Behaviour], Agent]]:
    agents = []

    def start(behaviour: Behaviour) -> Agent:
        agents.append(Agent(node, behaviour))
        agents[-1].start()
        return agents[-1]

    yield start
    for one in agents:
        one.stop()


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
    assert said.err == f"error: {file}: pod default/web: stands in {file} as well, expected it once\n"


def test_findings_are_told_and_strict_refuses_them(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    agent(lambda command: [applied(command, name) for name in asked_for(command)])
    file = write(tmp_path, WEB.replace("image: busybox", "image: busybox, tty: true, frobnicate: 1"))
    said = node.run("apply", "-f", file)
    assert (said.status, said.out) == (0, "pod/web created\n")
    assert sorted(line.split(": ")[2] for line in said.err.splitlines()) == [
        "spec.containers[0].frobnicate",
        "spec.containers[0].tty",
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
    assert "stays in the mailbox and is carried out when an agent runs again" in said.err


def test_a_command_that_the_agent_gave_up_is_an_error(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    def give_up(command: Command) -> list[Event]:
        about: dict[str, Any] = {"message": "manifests.ApplyPods@1", "source": "mailbox", "at": command.request}
        return [kernel.MessageDeadLettered(**about, tries=3, error="ZeroDivisionError: division by zero")]

    agent(give_up)
    said = node.run("apply", "-f", write(tmp_path, WEB))
    expected = "error: the node agent could not deal with manifests.ApplyPods@1: ZeroDivisionError: division by zero\n"
    assert said == ("", expected, 1)


def test_a_full_mailbox_is_an_error(node: WrittenNode, tmp_path: Path) -> None:
    Agent(node, lambda _: []).own()
    for number in range(10_000):
        node.server.shard(MANIFESTS).mail.append(Mail(node.server.last._replace(n=10**9 + number), "t", "e", "r", b""))
    said = node.run("apply", "-f", write(tmp_path, WEB))
    assert said.err.startswith("error: 10,000 commands are waiting")


def withdrawn(name: str) -> manifests.PodWithdrawn:
    return manifests.PodWithdrawn(pod=f"default/{name}", uid=f"uid-{name}", source="apply")


def test_delete_waits_until_nothing_is_left(node: WrittenNode, agent: Callable[[Behaviour], Agent]) -> None:
    def behave(command: Command) -> list[Event]:
        return [withdrawn("web"), withdrawn("db")]

    def end() -> None:
        # Another life of the name ends, then one pod: both are not what is waited for.
        node.write("pod/default/web", pod.PodEnded(pod="default/web", uid="an older life"))
        node.write("pod/default/web", pod.PodEnded(pod="default/web", uid="uid-web"))
        assert command.is_alive()
        node.write("pod/default/db", pod.PodEnded(pod="default/db", uid="uid-db"))

    answering = agent(behave)
    answering.afterwards = end
    said = []
    command = threading.Thread(
        target=lambda: said.append(node.run("delete", "pod", "web", "db", "--grace-period", "3"))
    )
    command.daemon = True
    command.start()
    command.join(timeout=20)
    assert said == [("pod/web deleted\npod/db deleted\n", "", 0)]
    sent = answering.seen[0]
    assert isinstance(sent, manifests.DeletePods)
    assert (sent.pods, sent.grace_period_seconds) == (("default/web", "default/db"), 3)


@pytest.mark.parametrize(
    ("flags", "grace"),
    [([], None), (["--grace-period", "-1"], None), (["--force"], 0), (["--force", "--grace-period", "5"], 5)],
)
def test_delete_without_waiting(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], flags: list[str], grace: int | None
) -> None:
    answering = agent(lambda _: [withdrawn("web")])
    assert node.run("delete", "pod/web", "--no-wait", *flags) == ("pod/web deleted\n", "", 0)
    sent = answering.seen[0]
    assert isinstance(sent, manifests.DeletePods)
    assert sent.grace_period_seconds == grace


@pytest.mark.parametrize(
    ("flags", "grace"),
    [(["--wait=false"], None), (["--wait=true", "--force"], 0), (["--wait=False", "--force=false"], None)],
)
def test_delete_takes_kubectls_spelling(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], flags: list[str], grace: int | None
) -> None:
    answering = agent(lambda _: [withdrawn("web")])
    assert node.run("delete", *flags, "pod/web") == ("pod/web deleted\n", "", 0)
    sent = answering.seen[0]
    assert isinstance(sent, manifests.DeletePods)
    assert sent.grace_period_seconds == grace


def test_delete_by_file_and_of_what_is_not_there(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], tmp_path: Path
) -> None:
    refused = manifests.PodRefused(pod="default/web", source="apply", reason="not found")
    agent(lambda _: [refused])
    said = node.run("delete", "-f", write(tmp_path, WEB))
    assert said == ("", "error: pod default/web: not found\n", 1)


def test_a_node_that_is_just_starting_is_waited_for(
    node: WrittenNode, agent: Callable[[Behaviour], Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PATIENCE_SECONDS", 30.0)
    log, last = list(node.server.log), node.server.last
    asked = threading.Event()

    def begin() -> None:
        asked.wait(20)
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
