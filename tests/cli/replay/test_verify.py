"""`chronolet replay --verify`: which decisions are reproduced, and what is said about the others."""

import functools
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet.kernel.hosting.process import Process, Setup
from chronolet.kernel.kind import EffectContext, Job
from chronolet.manifests import actor as manifests
from chronolet.manifests.wanted import KeepSecrets, WatchFolder
from chronolet.node.settings.plain import digest, plain_settings
from chronolet.node.settings.settings import Settings
from chronolet_schemas import codec, data_fields, kernel, registry
from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard
from chronolet_schemas.manifests import ApplyPods, DeletePods
from chronolet_schemas.podspec import Container, ObjectMeta, Pod, PodSpec
from tests.cli.support.busy_node import busy
from tests.cli.support.written_node import NODE, WrittenNode
from tests.support import scratch

SHARD = Shard("manifests")


def described(process: str) -> kernel.ProcessStarted:
    plain = plain_settings(Settings(node=NODE, root_dir=Path("/var/lib/chronolet")))
    return kernel.ProcessStarted(
        process=process, kinds=["manifests"], settings=plain, settings_digest=digest(plain), architecture="x86_64"
    )


@pytest.fixture
def node() -> Iterator[WrittenNode]:
    """A node on which a real process has decided three commands about manifests."""
    node = WrittenNode()
    node.server.counts["manifests"] = 1
    waits = Job(until_cancelled)
    kind = manifests.kind({WatchFolder: waits, KeepSecrets: waits})
    setup = Setup(node=NODE, store=node.store, kinds={"manifests": kind}, shards={"manifests": 1}, describe=described)
    process = Process(setup)
    process.start()
    for command in (apply("a"), apply("b"), DeletePods(request=uuid.uuid4().hex, pods=("default/unknown",))):
        name = registry.type_of(type(command))
        node.store.send(SHARD, name, "manifests/node", command.request, codec.encode(command))
        scratch.wait_until(functools.partial(decided, node, command.request), "the decision")
    yield node
    process.retire()


def apply(name: str) -> ApplyPods:
    spec = PodSpec(containers=(Container(name="app", image="i"),))
    return ApplyPods(request=uuid.uuid4().hex, pods=(Pod(metadata=ObjectMeta(name=name), spec=spec),))


def until_cancelled(_effect: object, context: EffectContext) -> None:
    context.cancelled.wait()


def decided(node: WrittenNode, request: str) -> bool:
    return request in {entry.cause for entry in node.server.log}


def test_all_is_reproduced(node: WrittenNode) -> None:
    result = node.run("replay", "--verify")
    assert (result.status, result.errors) == (0, "")
    assert result.output == "Decisions: 3, events: 3, since #3: all reproduced.\n"


def test_a_range_is_compared_from_its_states_on(node: WrittenNode) -> None:
    result = node.run("replay", "--verify", "--from", "#3", "--to", "#4")
    assert (result.status, result.output) == (0, "Decisions: 1, events: 1, since #4: all reproduced.\n")


def test_what_differs_is_named_and_the_status_is_1(node: WrittenNode) -> None:
    at, entry = len(node.server.log) - 1, node.server.log[-1]
    parts = data_fields.parts(entry.data)
    forged = codec.decode(entry.type, parts.plain, Event)
    node.server.log[at] = entry._replace(
        data=data_fields.with_input(
            codec.encode(type(forged)(**{**parts.fields, "reason": parts.fields["reason"][:-1] + "!"})), parts.value
        )
    )
    result = node.run("replay", "--verify")
    assert result.status == 1
    line, summary = result.output.splitlines()
    assert line.startswith(f"#{entry.position.n} different manifests#1 manifests/node: DeletePods leads to ")
    assert "reason is now 'pods " in line
    assert summary == "Decisions: 3, events: 3, since #3: 1 not reproduced."
    assert "not everything in the log follows from what it records" in result.errors


def test_a_difference_shows_in_a_bundle_but_not_if_names_are_replaced(node: WrittenNode, tmp_path: Path) -> None:
    at, entry = len(node.server.log) - 1, node.server.log[-1]
    parts = data_fields.parts(entry.data)
    plain = codec.encode(
        type(codec.decode(entry.type, parts.plain, Event))(
            **{**parts.fields, "reason": parts.fields["reason"][:-1] + "!"}
        )
    )
    node.server.log[at] = entry._replace(data=data_fields.with_input(plain, parts.value))
    path, other = str(tmp_path / "x.bundle"), str(tmp_path / "other.bundle")
    assert node.run("bundle", "save", path).status == 0
    result = node.run("bundle", "open", path, "replay", "--verify")
    assert result.status == 1
    assert result.output.startswith(f"#{entry.position.n} different manifests#1 ")
    assert node.run("bundle", "anonymise", path, other).status == 0
    result = node.run("bundle", "open", other, "replay", "--verify")
    assert result.status == 0
    assert "Nothing was compared." in result.output


def test_as_json(node: WrittenNode) -> None:
    lines = node.run("replay", "--verify", "-o", "json").output.splitlines()
    summary = json.loads(lines[-1])
    assert (summary["decisions"], summary["events"], summary["skipped"], summary["not_reproduced"]) == (3, 3, 0, 0)
    assert summary["since"].endswith("-3")


def test_a_log_without_records_is_not_compared() -> None:
    result = busy().run("replay", "--verify")
    assert result.status == 0
    assert result.output.startswith("Nothing was compared. ")
    assert "; the log does not tell what led to them." in result.output


@pytest.mark.parametrize("other", [("-f",), ("--speed", "2"), ("--step",), ("--only", "pods"), ("--at", "-1m")])
def test_options_that_do_not_go_with_it(node: WrittenNode, other: tuple[str, ...]) -> None:
    result = node.run("replay", "--verify", *other)
    assert result.status == 2
    assert "expected one of them" in result.errors
