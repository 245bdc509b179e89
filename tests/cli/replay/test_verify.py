"""`chronolet replay --verify`: which decisions are reproduced, and what is said about the others."""

import functools
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from chronolet.kernel.hosting.process import Process, Setup
from chronolet.kernel.kind import EffectContext, Job
from chronolet.manifests import actor as manifests
from chronolet.manifests.wanted import KeepSecrets, WatchFolder
from chronolet.node.settings.plain import digest, plain_settings
from chronolet.node.settings.settings import Settings
from chronolet_schemas import codec, data_fields, kernel, registry
from chronolet_schemas.envelope import Entry, Event
from chronolet_schemas.keys import Shard
from chronolet_schemas.manifests import ApplyPods, DeletePods
from chronolet_schemas.podspec import Container, EnvVar, ObjectMeta, Pod, PodSpec
from tests.bench.history.recorded_entries import recorded_entries
from tests.cli.support.archived_node import archive_log
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
    with capture_logs():  # the process's own lines would otherwise be in the output of a command that runs meanwhile
        process.start()
        for command in (apply("a"), apply("b"), DeletePods(request=uuid.uuid4().hex, pods=("default/unknown",))):
            decide(node, command)
        yield node
        process.retire()


def apply(name: str, *env: EnvVar) -> ApplyPods:
    spec = PodSpec(containers=(Container(name="app", image="i", env=env),))
    return ApplyPods(request=uuid.uuid4().hex, pods=(Pod(metadata=ObjectMeta(name=name), spec=spec),))


def decide(node: WrittenNode, command: ApplyPods | DeletePods) -> None:
    """Send a command to the process, and wait for its decision."""
    name = registry.type_of(type(command))
    node.store.send(SHARD, name, "manifests/node", command.request, codec.encode(command))
    scratch.wait_until(functools.partial(decided, node, command.request), "the decision")


def forge(node: WrittenNode, at: int) -> Entry:
    """Change the reason in the event of an entry, and return the entry as it was."""
    entry = node.server.log[at]
    parts = data_fields.parts(entry.data)
    event = type(codec.decode(entry.type, parts.plain, Event))
    forged = event(**{**parts.fields, "reason": parts.fields["reason"][:-1] + "!"})
    node.server.log[at] = entry._replace(data=data_fields.with_input(codec.encode(forged), parts.value))
    return entry


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
    entry = forge(node, len(node.server.log) - 1)
    result = node.run("replay", "--verify")
    assert result.status == 1
    line, summary = result.output.splitlines()
    assert line.startswith(f"#{entry.position.n} different manifests#1 manifests/node: DeletePods leads to ")
    assert "reason is now 'pods " in line
    assert summary == "Decisions: 3, events: 3, since #3: 1 not reproduced."
    assert "not everything in the log follows from what it records" in result.errors


def test_a_difference_shows_in_a_bundle_but_not_if_names_are_replaced(node: WrittenNode, tmp_path: Path) -> None:
    entry = forge(node, len(node.server.log) - 1)
    path, other = str(tmp_path / "x.bundle"), str(tmp_path / "other.bundle")
    assert node.run("bundle", "save", path).status == 0
    result = node.run("bundle", "open", path, "replay", "--verify")
    assert result.status == 1
    assert result.output.startswith(f"#{entry.position.n} different manifests#1 ")
    assert node.run("bundle", "anonymise", path, other).status == 0
    result = node.run("bundle", "open", other, "replay", "--verify")
    assert result.status == 0
    assert "Nothing was compared." in result.output


@pytest.fixture
def with_secret(node: WrittenNode, tmp_path: Path) -> str:
    """A bundle of the node, which has also decided about a pod with a password: the digest in the event is that of the
    manifest with the password, which the bundle does not have.
    """
    decide(node, apply("secret", EnvVar(name="PASSWORD", value="hunter2-and-more")))
    path = str(tmp_path / "secret.bundle")
    assert node.run("replay", "--verify").output == "Decisions: 4, events: 4, since #3: all reproduced.\n"
    assert node.run("bundle", "save", path).status == 0
    return path


def test_what_differs_because_of_redaction_is_listed_and_the_status_is_0(node: WrittenNode, with_secret: str) -> None:
    result = node.run("bundle", "open", with_secret, "replay", "--verify")
    assert result.status == 0
    line, summary = result.output.splitlines()
    number = node.server.log[-1].position.n
    assert line.startswith(f"#{number} redacted manifests#1 manifests/node: ApplyPods leads to ")
    assert "digest is now " in line
    assert summary == "Decisions: 4, events: 4, since #3: 1 redacted, all others reproduced."
    assert result.errors.startswith("note: secrets were taken out of this log")


def test_what_differs_because_of_redaction_as_json(node: WrittenNode, with_secret: str) -> None:
    result = node.run("bundle", "open", with_secret, "replay", "--verify", "-o", "json")
    finding, summary = map(json.loads, result.output.splitlines())
    assert (result.status, finding["kind"]) == (0, "redacted")
    assert (summary["not_reproduced"], summary["redacted"], summary["decisions"]) == (0, 1, 4)


def test_another_difference_in_a_redacted_bundle_makes_the_status_1(node: WrittenNode, tmp_path: Path) -> None:
    forge(node, len(node.server.log) - 1)
    decide(node, apply("secret", EnvVar(name="PASSWORD", value="hunter2-and-more")))
    path = str(tmp_path / "x.bundle")
    assert node.run("bundle", "save", path).status == 0
    result = node.run("bundle", "open", path, "replay", "--verify")
    assert result.status == 1
    assert [line.split()[1] for line in result.output.splitlines()[:-1]] == ["different", "redacted"]
    assert result.output.endswith(": 1 redacted, 1 not reproduced.\n")


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


def test_the_log_of_a_real_agent_is_reproduced_from_an_archive_with_indexes(tmp_path: Path) -> None:
    node = WrittenNode()
    node.server.log[:] = recorded_entries()
    node.server.last = node.server.log[-1].position
    expected = node.run("replay", "--verify")
    assert (expected.status, expected.errors) == (0, "")
    assert int(expected.output.split()[1].rstrip(",")) > 2_000
    archive_log(node, tmp_path, file_entries=1_000, indexed=True)
    assert list(tmp_path.glob("*/*.checkpoint"))
    assert node.run("replay", "--verify") == expected
