"""Sessions: nodes without a log, and how much of a log a command reads."""

import json
from collections.abc import Mapping, Sequence

import pytest

from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import Snapshot
from chronolet.pod.state import SHARDS
from chronolet_schemas.envelope import START
from chronolet_schemas.keys import Shard, shard_for
from tests.cli.support.log_owner import LogOwner
from tests.cli.support.written_node import SHORT, WrittenNode


def test_a_read_of_a_node_without_a_log_is_one_error_line() -> None:
    node = WrittenNode()
    node.server.log, node.server.last = [], START
    result = node.run("get", "pods")
    assert result.status == 1
    assert result.errors.startswith("error: node node-1 has no log at unix:///none: start its agent")


def test_a_change_of_a_node_without_a_log_is_an_error_after_a_wait() -> None:
    node = WrittenNode(timing=SHORT)
    node.server.log, node.server.last = [], START
    result = node.run("delete", "pod/web")
    assert result.status == 1
    assert result.errors.startswith("error: node node-1 has no log at unix:///none: start its agent")


class RecordingStore(MemoryStore):
    """A store that records the shards whose snapshots are read."""

    def __init__(self, node: WrittenNode, shards: set[Shard]) -> None:
        super().__init__(node.server)
        self.shards = shards

    def read_snapshots(self, shards: Sequence[Shard]) -> Mapping[Shard, Snapshot]:
        self.shards.update(shards)
        return super().read_snapshots(shards)


@pytest.mark.parametrize(
    "words", [("get", "pod", "web"), ("describe", "pod/web"), ("delete", "pod", "web", "--no-wait")]
)
def test_a_command_about_one_pod_reads_only_the_snapshot_of_its_shard(node: WrittenNode, words: Sequence[str]) -> None:
    shards: set[Shard] = set()
    node.open_store = lambda: RecordingStore(node, shards)
    assert node.run(*words).status == 0
    assert {shard for shard in shards if shard.kind == "pod"} == {shard_for("pod", SHARDS, "default/web")}


def test_the_state_of_one_pod_is_that_in_the_state_of_all(owner: LogOwner) -> None:
    for name in ("a", "b", "c", "d"):
        owner.accept(name)
    owner.archive_and_trim(owner.fill())
    owner.accept("e")
    whole = json.loads(owner.run("get", "pods", "-o", "json").output)["items"]
    for pod in whole:
        one = json.loads(owner.run("get", "pod", pod["metadata"]["name"], "-o", "json").output)
        assert one == pod
    assert [pod["metadata"]["name"] for pod in whole] == ["a", "b", "c", "d", "e"]
    assert owner.run("get", "pod", "f").errors == 'Error from server (NotFound): pods "f" not found\n'
