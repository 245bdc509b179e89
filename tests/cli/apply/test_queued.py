"""`apply` and `delete` with `--wait=false` on a node without an agent: queued commands and their output."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chronolet.adapters.state_folder.secrets import SecretFiles
from chronolet.cli.sending import MANIFESTS
from chronolet_schemas import codec, manifests
from chronolet_schemas.envelope import Command, Event
from tests.cli.support.agent import Agent, Behaviour
from tests.cli.support.histories import UID
from tests.cli.support.written_node import NODE, SHORT, WrittenNode, run

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: app, image: busybox}]}\n"
APPLIED = "queued: no node agent is running; it will be applied when one starts"
DELETED = "deletion queued: no node agent is running; it will be deleted when one starts"


@pytest.fixture
def node(node: WrittenNode) -> WrittenNode:
    node.timing = SHORT
    return node


def queued(node: WrittenNode) -> list[Command]:
    return [codec.decode(mail.type, mail.data, Command) for mail in node.server.shard(MANIFESTS).mail]


def test_an_apply_without_an_agent_is_queued_once(node: WrittenNode) -> None:
    result = node.run("apply", "-f", "-", "--wait=false", stdin=POD.encode())
    assert result == (f"pod/new {APPLIED}\n", "", 0)
    (command,) = queued(node)
    assert isinstance(command, manifests.ApplyPods)
    assert [one.key for one in command.pods] == ["default/new"]
    assert node.run("apply", "-f", "-", "--wait=false", "-o", "name", stdin=POD.encode()).output == "pod/new\n"


def test_a_secret_is_stored_locally_and_only_its_digest_is_queued(node: WrittenNode, tmp_path: Path) -> None:
    config = {"auths": {"reg.example": {"username": "u", "password": "hunter2hunter2"}}}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "regcred"},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(json.dumps(config).encode()).decode()},
    }
    SecretFiles(tmp_path, NODE).prepare()  # an agent does this when it starts
    words = ("apply", "-f", "-", "--wait=false", "--root-dir", str(tmp_path))
    result = node.run(*words, stdin=json.dumps(secret).encode())
    assert result == (f"secret/regcred {APPLIED}\n", "", 0)
    (command,) = queued(node)
    assert isinstance(command, manifests.ApplyPods)
    assert [one.secret for one in command.secrets] == ["default/regcred"]
    assert b"hunter2" not in node.server.shard(MANIFESTS).mail[0].data
    assert node.run("delete", "secret", "regcred", "--wait=false").output == f"secret/regcred {DELETED}\n"


def test_a_queued_deletion_marks_pods_that_are_not_in_the_log(node: WrittenNode) -> None:
    result = node.run("delete", "pod", "web", "new", "--wait=false", "--grace-period", "3")
    assert result == (f"pod/web {DELETED}\npod/new {DELETED} (not in the log at present)\n", "", 0)
    (command,) = queued(node)
    assert isinstance(command, manifests.DeletePods)
    assert (command.pods, command.grace_period_seconds) == (("default/web", "default/new"), 3)
    assert node.run("delete", "pods", "--all", "--no-wait", "-o", "name") == ("pod/web\n", "", 0)


def test_without_the_flag_and_an_agent_nothing_is_sent(node: WrittenNode) -> None:
    for words in (("apply", "-f", "-"), ("delete", "pod", "web")):
        result = node.run(*words, stdin=POD.encode())
        assert (result.status, result.output) == (1, "")
        assert "nothing was sent; start the agent" in result.errors
    assert queued(node) == []


def test_a_running_agent_is_asked_as_usual(node: WrittenNode, agent: Callable[[Behaviour], Agent]) -> None:
    def behave(command: Command) -> list[Event]:
        assert isinstance(command, manifests.DeletePods)
        return [manifests.PodWithdrawn(pod="default/web", uid=UID, source="apply")]

    agent(behave)
    assert node.run("delete", "pod", "web", "--wait=false") == ("pod/web deleted\n", "", 0), "its end is not awaited"


def test_a_command_stays_queued_once_if_the_agent_ends_before_it_answers(
    node: WrittenNode, agent: Callable[[Behaviour], Agent]
) -> None:
    ending = agent(lambda _: [])
    ending.before_answer = lambda: ending.store.retire("p1", [])
    result = node.run("delete", "pod", "web", "--wait=false")
    assert result == (f"pod/web {DELETED}\n", "", 0)
    assert len(queued(node)) == 1


def test_on_a_node_without_a_log_nothing_is_queued(tmp_path: Path) -> None:
    (tmp_path / "new.yaml").write_text(POD)
    words = ("--root-dir", str(tmp_path), "apply", "-f", str(tmp_path / "new.yaml"), "--wait=false")
    result = run(WrittenNode(timing=SHORT).services(), *words)
    assert (result.status, result.output) == (1, "")
    assert result.errors.startswith(f"error: no node agent's Redis at {tmp_path}/redis/redis.sock: start one with")
    assert result.errors.endswith("; nothing was sent\n")
