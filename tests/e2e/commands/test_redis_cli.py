"""The ten questions of docs/redis-cli.md, answered for a real node by the commands printed on that page.

Each test runs all commands of one section and checks the content of the answer.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from chronolet.adapters.redis_server.server import OwnServer
from chronolet_schemas import kernel
from chronolet_schemas import pod as pods
from chronolet_schemas.keys import Keys, Shard
from tests.docs.markdown import ROOT, Page
from tests.e2e.devices.device_node import plugin, requesting
from tests.e2e.node import Node, running_node, shell
from tests.e2e.node import pod as a_pod
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import PrivateRedis, private_redis
from tests.support.scratch import hang_limit, wait_until

PAGE = ROOT / "docs" / "redis-cli.md"
QUESTIONS = (
    "What is running?",
    "What restarted, and why?",
    "Who owns which device?",
    "Which process owns the shard?",
    "What is waiting?",
    "What was given up?",
    "How large is the log?",
    "How far back does it go?",
    "What changed between two moments?",
    "Is anything stuck?",
)
NAME = "asked"
KEYS = Keys(NAME)
RESOURCE = "asked.test/thing"
DEFAULT_ROOT = Path("/var/lib/chronolet")


def sections() -> dict[str, str]:
    """Return the text below each heading of the page."""
    parts = PAGE.read_text().split("\n## ")
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


def commands(heading: str) -> list[str]:
    """Return the command blocks of a section. A block may have several commands."""
    return [block.text for block in Page(PAGE, sections()[heading]).blocks() if block.language == "sh"]


class Answer(NamedTuple):
    """The output of all commands of a section: `lines` in JSON, their `summaries`, and `plain` lines without JSON."""

    lines: list[dict[str, Any]]
    summaries: list[dict[str, Any]]
    plain: list[str]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the lines whose type is `kind`, in any version."""
        return [line for line in self.lines if line.get("type", "").partition("@")[0] == kind]


class Asked(msgspec.Struct, frozen=True):
    """A node, and the Redis server that the commands query."""

    node: Node
    server: PrivateRedis

    def ask(self, heading: str) -> Answer:
        """Run the section's commands in a shell, exactly as printed on the page."""
        answer = Answer([], [], [])
        for text in commands(heading):
            variables = {"SOCKET": str(self.server.socket), "NODE": KEYS.prefix}
            done = subprocess.run(
                ["bash", "-c", text],
                capture_output=True,
                text=True,
                env=self.node.environ | variables,
                timeout=hang_limit(),
                check=True,
            )
            assert (done.stderr, done.stdout.startswith("ERR")) == ("", False), (text, done)
            for line in done.stdout.splitlines():
                if not line.startswith("{"):
                    answer.plain.append(line)
                elif line.startswith('{"next"'):
                    answer.summaries.append(json.loads(line))
                else:
                    answer.lines.append(json.loads(line))
        assert answer.summaries, answer
        return answer

    def owner(self) -> str:
        """Return the process that owns the shard of `manifests`."""
        (token,) = self.server.client().hmget(KEYS.shard(Shard("manifests")), "token")
        assert isinstance(token, bytes)
        return token.decode().partition(":")[2]

    @contextmanager
    def without_lease(self) -> Iterator[None]:
        """Pause the agent between two starts of `loops`, wait for its lease to end, and resume it after the block."""
        node, key = self.node, KEYS.alive(self.owner())
        with node.paused_when("the back-off of loops", lambda: last_event_about_loops(node) == pods.RestartScheduled):
            wait_until(lambda: not self.server.client().exists(key), "the end of the lease")
            yield
        wait_until(lambda: bool(self.server.client().exists(key)), "the next renewal")


def last_event_about_loops(node: Node) -> type:
    """Return the class of the newest event about the container of `loops`."""
    lines = (line for line in node.journal.lines if line.entry.entity == "pod/default/loops")
    return [type(line.event) for line in lines if line.entry.subject == "container/app"][-1]


@pytest.fixture(scope="module")
def asked(docker_engine: PrivateDocker) -> Iterator[Asked]:
    """A node with an answer to each question: `web` was killed once, `sick` fails its liveness probe, `loops` crashes
    again and again, `gpu` has a device, and a command cannot be decoded.
    """
    with ExitStack() as stack:
        server = stack.enter_context(private_redis())
        node = stack.enter_context(running_node(docker_engine, server.url, NAME, server.folder / "agent"))
        stack.enter_context(plugin(node, RESOURCE))
        probe = {"exec": {"command": ["cat", "/none"]}, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 60}
        node.write(
            "all.yaml",
            a_pod("web"),
            a_pod("sick", shell("app", livenessProbe=probe)),
            a_pod("loops", shell("app", "exit 3")),
            a_pod("gpu", requesting(RESOURCE, 1)),
        )
        mailbox = KEYS.mailbox(Shard("manifests"))
        fields: Any = {"type": "manifests.ApplyPods@1", "entity": "manifests/node", "request": "bad", "data": b"\xc1"}
        server.client().xadd(mailbox, fields)
        node.journal.wait_for_event(kernel.EntryQuarantined, source="mailbox")
        node.wait_until_running("web", "gpu")
        node.kill_process("web", "app")
        for name in ("web", "sick", "loops"):
            node.journal.wait_for_event(pods.RestartScheduled, pod=f"default/{name}")
        node.journal.wait_for("the restart", lambda: node.restarts("web") == [1] and node.all_run("web"))
        yield Asked(node, server)


def test_the_page_has_the_ten_questions_and_its_variables_name_the_agents_server_and_keys() -> None:
    assert [heading for heading in sections() if heading.endswith("?")] == list(QUESTIONS)
    assert all(commands(question) for question in QUESTIONS)
    (variables,) = Page(PAGE, PAGE.read_text().partition("\n## ")[0]).blocks()
    script = f'hostname() {{ echo Host-1; }}\n{variables.text}echo "$SOCKET $NODE"'
    shown = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert shown == [str(OwnServer(DEFAULT_ROOT).socket), Keys("host-1").prefix]


def test_what_is_running(asked: Asked) -> None:
    answer = asked.ask("What is running?")
    running = {(line["data"]["pod"], line["data"]["container"]): line["data"]["id"] for line in answer.lines}
    for name in ("web", "gpu"):
        assert running[f"default/{name}", "app"] == asked.node.running(name)["app"]["Id"]
    assert ("default/loops", "app") not in running or asked.node.running("loops")
    assert answer.summaries[0]["begins"].endswith("-1")


def test_what_restarted_and_why(asked: Asked) -> None:
    answer = asked.ask("What restarted, and why?")
    exits = {
        (line["entity"], line["data"]["exit_code"], line["data"]["reason"]) for line in answer.of("pod.ContainerExited")
    }
    assert {("pod/default/web", 137, "Error"), ("pod/default/loops", 3, "Error")} <= exits
    stops = {(line["entity"], line["data"]["reason"]) for line in answer.of("pod.ContainerStopRequested")}
    assert ("pod/default/sick", "LivenessFailed") in stops
    restarted = {line["entity"] for line in answer.of("pod.RestartScheduled")}
    assert {"pod/default/web", "pod/default/loops", "pod/default/sick"} <= restarted
    exited = next(
        line for line in answer.of("pod.ContainerExited") if line["data"]["exit_code"] == 137 and "causes" in line
    )
    assert exited["causes"][0]["type"] == "pleg.ContainerDied@1", "the second command shows what led to it"
    explained = [line for line in answer.lines if "causes" in line]
    assert {line["data"].get("pod") or line["entity"] for line in explained} <= {"default/web", "pod/default/web"}


def test_who_owns_which_device(asked: Asked) -> None:
    (granted,) = asked.ask("Who owns which device?").of("pod.DevicesGranted")
    assert (granted["entity"], granted["subject"]) == ("pod/default/gpu", "devices/app")
    (device,) = granted["data"]["devices"][RESOURCE]
    shown = asked.node.chronolet("get", "devices", "--no-headers").out
    (held,) = [line.split() for line in shown.splitlines() if "default/gpu" in line]
    assert held[:2] == [RESOURCE, device]


def test_which_process_owns_the_shard(asked: Asked) -> None:
    answer = asked.ask("Which process owns the shard?")
    owners = {line["shard"]: line["owner"] for line in answer.lines}
    table = [line.split() for line in asked.node.chronolet("get", "actors", "--no-headers").out.splitlines()]
    assert owners == {row[0]: row[1] for row in table}
    assert len(owners) > 10
    assert set(owners.values()) == {asked.owner()}
    assert all(line["alive"] and "manifests" in line["info"] for line in answer.lines)
    every, of_pods = answer.summaries
    assert (every["lines"], of_pods["lines"]) == (
        len(owners),
        len([name for name in owners if name.startswith("pod/")]),
    )


def test_what_is_waiting(asked: Asked) -> None:
    path = asked.node.write_unwatched("queued.yaml", a_pod("queued"))
    with asked.without_lease():
        assert "queued" in asked.node.chronolet("apply", "-f", path, "--wait=false").out
        answer = asked.ask("What is waiting?")
    waiting = {line["entity"] for line in answer.of("pod.RestartScheduled") + answer.of("pod.BackOffContinued")}
    assert "pod/default/loops" in waiting
    assert not {"pod/default/web", "pod/default/gpu"} & {line.get("entity") for line in answer.lines}
    (shard,) = [line for line in answer.lines if "shard" in line]
    assert (shard["shard"], shard["waiting"]) == ("manifests", 1)
    (command,) = answer.of("manifests.ApplyPods")
    assert "queued" in json.dumps(command["data"])
    asked.node.wait_until_running("queued")
    later = asked.ask("What is waiting?")
    assert [line for line in later.lines if "shard" in line or "request" in line] == []


def test_what_was_given_up(asked: Asked) -> None:
    answer = asked.ask("What was given up?")
    letter, event = answer.lines
    assert (letter["source"], letter["type"]) == ("mailbox", "manifests.ApplyPods@1")
    assert list(letter["data"]) == ["undecodable"]
    assert event["type"] == "kernel.EntryQuarantined@1"
    assert event["data"]["message"] == "manifests.ApplyPods@1"
    assert event["data"]["error"] == letter["error"]


def test_how_large_is_the_log(asked: Asked) -> None:
    before = asked.server.client().xlen(KEYS.log)
    answer = asked.ask("How large is the log?")
    after = asked.server.client().xlen(KEYS.log)
    assert before > 50
    assert before <= answer.summaries[0]["entries"] <= after
    assert answer.summaries[0]["trimmed"] == 0
    (size,) = answer.plain
    assert int(size) > 50 * before


def test_how_far_back_does_it_go(asked: Asked) -> None:
    answer = asked.ask("How far back does it go?")
    (oldest,) = answer.lines
    first = asked.node.journal.lines[0].entry
    assert oldest["type"] == "kernel.LogStarted@1"
    assert oldest["position"] == answer.summaries[0]["begins"] == str(first.position)
    assert oldest["time"] == answer.summaries[0]["begins_time"]
    assert answer.plain == ["0-0", "0-0"], "nothing is archived or trimmed yet"


def test_what_changed_between_two_moments(asked: Asked) -> None:
    asked.node.journal.catch_up()
    answer = asked.ask("What changed between two moments?")
    assert answer.summaries[0]["more"] is False
    kinds = ("manifests", "pod", "pleg", "kernel")
    chosen = [line.entry for line in asked.node.journal.lines if line.entry.type.partition(".")[0] in kinds]
    expected = [str(entry.position) for entry in chosen]
    assert len(expected) > 30
    # TO is in whole seconds, so it may be before the last events.
    shown = [line["position"] for line in answer.lines]
    assert shown[:30] == expected[:30]
    assert set(expected[: len(shown)]) == set(shown[: len(expected)])


def test_is_anything_stuck(asked: Asked) -> None:
    well = asked.ask("Is anything stuck?")
    assert (well.lines, well.summaries[0]["stuck"]) == ([], 0)
    with asked.without_lease():
        stuck = asked.ask("Is anything stuck?")
    owner = asked.owner()
    assert stuck.summaries[0]["stuck"] == stuck.summaries[0]["shards"] == len(stuck.lines) > 10
    assert all(line["problems"] == [f"its owner {owner} does not renew its lease"] for line in stuck.lines)
    wait_until(lambda: not asked.ask("Is anything stuck?").lines, "the owner's next renewal")
