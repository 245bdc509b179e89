"""`apply` and `delete` with `--wait=false` where no agent runs: what is queued, what is said, what is not queued."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chronolet.adapters.state_folder.secrets import SecretFiles
from chronolet.cli import asking, session
from chronolet.cli.asking import MANIFESTS
from chronolet_schemas import codec, manifests
from chronolet_schemas.envelope import Command, Event
from tests.cli.agent import Agent, Behaviour
from tests.cli.histories import UID
from tests.cli.written import NODE, WrittenNode, run

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: app, image: busybox}]}\n"
APPLIED = "queued: no node agent is running; it will be applied when one starts"
DELETED = "deletion queued: no node agent is running; it will be deleted when one starts"


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "OWNERLESS_SECONDS", 0.3)
    monkeypatch.setattr(session, "PATIENCE_SECONDS", 0.3)


def queued(node: WrittenNode) -> list[Command]:
    return [codec.decode(mail.type, mail.data, Command) for mail in node.server.shard(MANIFESTS).mail]


def test_an_apply_is_queued_once_with_what_it_says(node: WrittenNode) -> None:
    said = node.run("apply", "-f", "-", "--wait=false", stdin=POD.encode())
    assert said == (f"pod/new {APPLIED}\n", "", 0)
    (command,) = queued(node)
    assert isinstance(command, manifests.ApplyPods)
    assert [one.key for one in command.pods] == ["default/new"]
    assert node.run("apply", "-f", "-", "--wait=false", "-o", "name", stdin=POD.encode()).out == "pod/new\n"


def test_what_a_secret_holds_is_kept_here_and_only_its_digest_is_queued(node: WrittenNode, tmp_path: Path) -> None:
    config = {"auths": {"reg.example": {"username": "u", "password": "hunter2hunter2"}}}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "regcred"},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(json.dumps(config).encode()).decode()},
    }
    SecretFiles(tmp_path, NODE).prepare()  # as the agent did when it ran
    words = ("apply", "-f", "-", "--wait=false", "--root-dir", str(tmp_path))
    said = node.run(*words, stdin=json.dumps(secret).encode())
    assert said == (f"secret/regcred {APPLIED}\n", "", 0)
    (command,) = queued(node)
    assert isinstance(command, manifests.ApplyPods)
    assert [one.secret for one in command.secrets] == ["default/regcred"]
    assert b"hunter2" not in node.server.shard(MANIFESTS).mail[0].data
    assert node.run("delete", "secret", "regcred", "--wait=false").out == f"secret/regcred {DELETED}\n"


def test_a_deletion_is_queued_and_says_what_the_log_does_not_know(node: WrittenNode) -> None:
    said = node.run("delete", "pod", "web", "new", "--wait=false", "--grace-period", "3")
    assert said == (f"pod/web {DELETED}\npod/new {DELETED} (not in the log at present)\n", "", 0)
    (command,) = queued(node)
    assert isinstance(command, manifests.DeletePods)
    assert (command.pods, command.grace_period_seconds) == (("default/web", "default/new"), 3)
    assert node.run("delete", "pods", "--all", "--no-wait", "-o", "name") == ("pod/web\n", "", 0)


def test_without_the_flag_nothing_is_sent(node: WrittenNode) -> None:
    for words in (("apply", "-f", "-"), ("delete", "pod", "web")):
        said = node.run(*words, stdin=POD.encode())
        assert (said.status, said.out) == (1, "")
        assert "nothing was sent; start the agent" in said.err
    assert queued(node) == []


def test_where_an_agent_runs_it_is_asked_as_ever(node: WrittenNode, agent: Callable[[Behaviour], Agent]) -> None:
    def behave(command: Command) -> list[Event]:
        assert isinstance(command, manifests.DeletePods)
        return [manifests.PodWithdrawn(pod="default/web", uid=UID, source="apply")]

    agent(behave)
    assert node.run("delete", "pod", "web", "--wait=false") == ("pod/web deleted\n", "", 0), "its end is not awaited"


def test_an_agent_that_ends_before_its_answer_leaves_the_command_queued_once(
    node: WrittenNode, agent: Callable[[Behaviour], Agent]
) -> None:
    ending = agent(lambda _: [])
    ending.beforehand = lambda: ending.store.retire("p1", [])
    said = node.run("delete", "pod", "web", "--wait=false")
    assert said == (f"pod/web {DELETED}\n", "", 0)
    assert len(queued(node)) == 1


def test_a_node_that_never_ran_is_named_and_nothing_is_queued(tmp_path: Path) -> None:
    (tmp_path / "new.yaml").write_text(POD)
    words = ("--root-dir", str(tmp_path), "apply", "-f", str(tmp_path / "new.yaml"), "--wait=false")
    said = run(WrittenNode().services(), *words)
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith(f"error: no node agent's Redis at {tmp_path}/redis/redis.sock: start one with")
    assert said.err.endswith("; nothing was sent\n")
