"""States that begin with a checkpoint equal those folded from the beginning, whatever is wrong with the checkpoints."""

import random
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from chronolet.history.archives import NodeArchive
from chronolet.history.derived import checkpoint, code, sealed
from chronolet.history.derived.checkpoint import Version
from chronolet.history.derived.upkeep import Upkeep
from chronolet.history.state import state_at
from chronolet.kernel.kind import Kind
from chronolet.kernel.log.archive import Archive
from chronolet.kernel.step.snapshots import EntityImage, encode_states
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import Snapshot
from chronolet_schemas.envelope import START, Entry, Position
from chronolet_schemas.keys import Shard
from tests.history.derived.support import NODE, RUN, WEB, Shelf, bomb, folded, kinds

IN_STREAM = 150
"""The number of entries of the shelf that the stream still has."""


class Node:
    """A node whose log has the shelf's entries: the older ones in the archive only."""

    def __init__(self, folder: Path, *, indexed: bool = True) -> None:
        self.shelf = Shelf(folder, indexed=indexed)
        self.server = MemoryServer(lambda: 0)
        self.store = MemoryStore(self.server)
        self.server.run = RUN
        self.server.log = list(self.shelf.entries[-IN_STREAM:])
        self.server.last = self.shelf.entries[-1].position
        self.server.archived = self.shelf.entries[-1].position
        self.server.trimmed = self.shelf.entries[-IN_STREAM - 1].position
        self.archive = CountingArchive(lambda _: self.shelf.archive.storage, NODE, self.store)

    def states(self, position: Position | None, **keys: frozenset[str]) -> Mapping[str, Mapping[str, Any]]:
        return state_at(self.store, self.archive, kinds(), position, keys=keys).states


class CountingArchive(NodeArchive):
    """A node's archive that counts the entries that it returns."""

    returned = 0

    def entries(self, *arguments: Any) -> Any:
        for entry in super().entries(*arguments):
            self.returned += 1
            yield entry


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def some_numbers(count: int) -> list[int]:
    """Return numbers of entries: random ones, and those next to the ends of files and of the trimmed part."""
    edges = [1, 2, 130, 131, 299, 300, 301, 600, 1_000 - IN_STREAM, 1_001 - IN_STREAM, 999, 1_000]
    return sorted({*edges, *random.Random(17).sample(range(1, 1_001), count)})


def test_states_at_any_moment_are_those_folded_from_the_beginning(node: Node) -> None:
    for number in some_numbers(40):
        found = node.states(node.shelf.entries[number - 1].position)
        assert found == folded(node.shelf.entries[:number]), number


def test_little_is_folded(node: Node) -> None:
    assert len(node.shelf.paths(".checkpoint")) == 4 + 3 * 2  # at the end of each file, and two within each full one
    node.states(node.shelf.entries[610].position)
    assert 0 < node.archive.returned <= 12
    node.archive.returned = 0
    node.states(node.shelf.entries[610].position, pod=frozenset({WEB}))
    assert 0 < node.archive.returned <= 12


def test_the_states_of_some_entities_are_read_alone(node: Node) -> None:
    position = node.shelf.entries[640].position
    expected = folded(node.shelf.entries[:641])["pod"]
    assert node.states(position, pod=frozenset({WEB}))["pod"] == {
        key: state for key, state in expected.items() if key == WEB
    }
    assert len(expected) > 1


def test_the_present_begins_with_a_checkpoint_if_there_are_no_snapshots(node: Node) -> None:
    assert node.states(None) == folded(node.shelf.entries)
    assert node.archive.returned == 0


def test_a_newer_snapshot_is_preferred(node: Node) -> None:
    """The snapshot lacks entities that the checkpoint has, and has another one."""
    node.shelf.paths(".checkpoint")[-1].unlink()
    shard, at = Shard("manifests"), node.shelf.entries[-20].position
    state = next(iter(folded(node.shelf.entries)["manifests"].values()))
    node.server.shard(shard).snapshot = Snapshot(at, 1, encode_states({"other": EntityImage(state=state)}))
    found = node.states(None)
    assert found["manifests"].keys() == {"other"}
    assert {**found, "manifests": None} == {**folded(node.shelf.entries), "manifests": None}


def test_an_older_snapshot_is_not_needed(node: Node) -> None:
    shard, at = Shard("manifests"), node.shelf.entries[100].position
    node.server.shard(shard).snapshot = Snapshot(at, 1, encode_states({}))
    assert node.states(node.shelf.entries[700].position) == folded(node.shelf.entries[:701])


# -- checkpoints that are wrong ----------------------------------------------------------------------------------------
def _summary_with(**changes: Any) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        found = checkpoint.decode(content)
        states = {kind.name: found.states_of(kind.name, kind.state) for kind in kinds()}
        # Without its states, to show that it is not used.
        return checkpoint.encode(replace(found.summary, **changes), {kind: {} for kind in states})

    return changed


def _with_states(states: bytes) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        found = checkpoint.decode(content)
        body = msgspec.msgpack.encode(checkpoint.Body(dict.fromkeys(found.states, states), {}))
        return sealed.sealed(b"chronolet checkpoint 1\n", found.summary, body)

    return changed


OTHER_CODE = {kind.name: Version(kind.format, "0" * 24) for kind in kinds()}
OTHER_FORMAT = {kind.name: Version(kind.format + 1, code.code_of(kind.name)) for kind in kinds()}
WRONG: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[:-50],
    "truncated in its summary": lambda content: content[:50],
    "empty": lambda content: b"",
    "not a checkpoint": lambda content: b"hello" * 1_000,
    "with states that are a compressed file of gigabytes": _with_states(bomb()),
    "with states that are a list of lists": _with_states(zlib.compress(b"\x91" * 200_000)),
    "with states that claim to be many": _with_states(zlib.compress(b"\xdf\xff\xff\xff\xff")),
    "with states that are not compressed": _with_states(b"hello"),
    "of another run": _summary_with(run="run-2"),
    "of another node": _summary_with(node="other"),
    "of another position": _summary_with(position=(1, 1)),
    "of a newer format": _summary_with(format=checkpoint.FORMAT + 1),
    "of other code": _summary_with(kinds=OTHER_CODE),
    "of another snapshot format": _summary_with(kinds=OTHER_FORMAT),
    "without a kind": _summary_with(kinds={}),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_checkpoint_that_cannot_be_used_is_ignored(node: Node, name: str) -> None:
    for path in node.shelf.paths(".checkpoint"):
        path.write_bytes(WRONG[name](path.read_bytes()))
    for number in (131, 450, 905, 1_000):
        assert node.states(node.shelf.entries[number - 1].position) == folded(node.shelf.entries[:number])
    # The next run replaces them.
    outcomes = node.shelf.upkeep()
    assert [one.problem for one in outcomes] == ["", "", "", ""]
    node.archive.returned = 0
    assert node.states(node.shelf.entries[904].position) == folded(node.shelf.entries[:905])
    assert node.archive.returned <= 5


def test_if_one_cannot_be_used_the_one_before_is(node: Node) -> None:
    newest = next(path for path in node.shelf.paths(".checkpoint") if "-730." in path.name)
    newest.write_bytes(newest.read_bytes()[:-50])
    assert node.states(node.shelf.entries[839].position) == folded(node.shelf.entries[:840])
    assert 840 - 730 < node.archive.returned <= 840 - 600 + 1


# -- archive files whose last entries Redis lost -----------------------------------------------------------------------
def other_end(entries: Sequence[Entry], kept: int, count: int) -> list[Entry]:
    """Return the first entries, and others with the same numbers, as written after a loss: a minute later, of other
    pods.
    """
    later = [
        one._replace(
            position=Position(one.position.milliseconds + 60_000, one.position.n),
            entity=one.entity.replace("web-", "new-"),
            data=one.data.replace(b"web-", b"new-"),
        )
        for one in entries[kept:count]
    ]
    return [*entries[:kept], *later]


def test_a_checkpoint_after_what_is_archived_is_ignored(node: Node) -> None:
    """The keeper died after it had written the last two files, and before it marked them; then Redis lost its end."""
    log = other_end(node.shelf.entries, 620, 950)
    node.server.log, node.server.last = log[450:], log[-1].position
    node.server.archived, node.server.trimmed = log[599].position, log[449].position
    assert node.states(None) == folded(log) != folded(node.shelf.entries[:950])
    for number in (440, 600, 640, 905, 949):
        assert node.states(log[number - 1].position) == folded(log[:number]), number


def test_a_checkpoint_of_a_superseded_file_is_ignored(node: Node) -> None:
    """The same, and the keeper has archived the new end."""
    log = other_end(node.shelf.entries, 620, 1_000)
    node.shelf.archive.write(log[600:], log[599].position)
    node.server.log, node.server.last = log[980:], log[-1].position
    node.server.archived, node.server.trimmed = log[-1].position, log[979].position
    for round_ in ("before the upkeep", "after it"):
        assert node.states(None) == folded(log), round_
        for number in (600, 640, 870, 905, 949, 985):
            assert node.states(log[number - 1].position) == folded(log[:number]), (round_, number)
        assert [one.problem for one in node.shelf.upkeep()] == ([""] if round_ == "before the upkeep" else [])


@pytest.mark.parametrize("begin", range(5))
def test_a_changed_byte_in_a_checkpoint_changes_nothing(node: Node, begin: int) -> None:
    path = next(path for path in node.shelf.paths(".checkpoint") if f"-{600}." in path.name)
    content, expected = path.read_bytes(), folded(node.shelf.entries[:605])
    for at in range(begin, len(content), 5 * 83):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        assert node.states(node.shelf.entries[604].position) == expected, at


def test_without_checkpoints_and_indexes_the_states_are_the_same(tmp_path: Path) -> None:
    node = Node(tmp_path, indexed=False)
    assert node.states(node.shelf.entries[500].position) == folded(node.shelf.entries[:501])
    assert node.archive.returned <= 502


# -- upkeep ------------------------------------------------------------------------------------------------------------
def test_a_second_run_has_nothing_to_do(node: Node) -> None:
    assert node.shelf.upkeep() == []
    upkeep = Upkeep(node.shelf.archive, kinds)
    assert list(upkeep.run()) == list(upkeep.run()) == []


@pytest.mark.parametrize("lacking", [("0.index", "1.checkpoint"), ("0.checkpoint", "1.index", "2.checkpoint")])
def test_whatever_is_missing_is_written_again(node: Node, lacking: Sequence[str]) -> None:
    """Checkpoints are folded from the one before, not from the states that were folded last."""
    before = {path.name: path.read_bytes() for path in node.shelf.folder.iterdir()}
    for one in lacking:
        number, suffix = one.split(".")
        last = node.shelf.archive.files()[int(number)].last
        next(path for path in node.shelf.paths(suffix) if path.stem.endswith(str(last))).unlink()
    assert len(node.shelf.upkeep()) == len(lacking)
    assert {path.name for path in node.shelf.folder.iterdir()} == before.keys()
    for number in (300, 600, 900):
        assert node.states(node.shelf.entries[number - 1].position) == folded(node.shelf.entries[:number])


def test_a_new_file_is_indexed_after_the_others(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, entries=600)
    upkeep = Upkeep(shelf.archive, kinds)
    assert list(upkeep.run()) == []
    longer = Shelf(tmp_path / "longer", entries=900, indexed=False)
    path = longer.paths(".archive")[-1]
    (shelf.folder / path.name).write_bytes(path.read_bytes())
    (outcome,) = upkeep.run()
    assert (outcome.file, len(outcome.written), outcome.problem) == (path.name, 2, "")
    assert list(upkeep.run()) == []


def test_overlapping_files_are_folded_once(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, entries=600)
    shelf.archive.write(shelf.entries[:450], START)
    assert not [one.problem for one in shelf.upkeep() if one.problem]
    expected = folded(shelf.entries)
    for path in shelf.paths(".checkpoint"):
        found = checkpoint.decode(path.read_bytes())
        number = found.position.n
        expected = folded(shelf.entries[:number])
        assert {kind.name: found.states_of(kind.name, kind.state) for kind in kinds()} == expected, number


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_there_is_no_checkpoint_after_entries_that_cannot_be_read(tmp_path: Path, harm: str) -> None:
    shelf = Shelf(tmp_path, indexed=False)
    path = shelf.paths(".archive")[1]
    content = path.read_bytes()
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:2_000] + b"\x55\xaa" + content[2_002:])
    problems = {one.file: one.problem for one in shelf.upkeep()}
    assert {path.stem.rpartition("-")[2] for path in shelf.paths(".checkpoint")} == {"130", "260", "300"}
    assert len(shelf.paths(".index")) == 3
    later = [problem for name, problem in problems.items() if name > path.name]
    assert len(later) == 2
    assert all(later)
    # After the repair, everything is written.
    path.write_bytes(content)
    assert [one.problem for one in shelf.upkeep()] == ["", "", ""]
    assert len(shelf.paths(".checkpoint")) == 10


def test_a_run_can_be_stopped(tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop() -> None:
        raise StoppedError

    shelf = Shelf(tmp_path, indexed=False)
    with pytest.raises(StoppedError):
        list(Upkeep(shelf.archive, kinds).run(stop))
    assert shelf.paths(".index") == []
    shelf.upkeep()
    assert len(shelf.paths(".index")) == 4


def test_an_archive_of_another_run_has_no_checkpoint(node: Node, tmp_path: Path) -> None:
    other = Archive(node.shelf.archive.storage, NODE, "run-2")
    outcomes = list(Upkeep(other, kinds).run())
    assert len(outcomes) == 4
    assert all("header has run" in one.problem for one in outcomes)


# -- code --------------------------------------------------------------------------------------------------------------
def test_the_code_of_each_kind_differs() -> None:
    assert len({code.code_of(kind.name) for kind in kinds()}) == len(kinds())
    assert code.code_of("no_such_kind") == ""


def test_without_source_there_are_no_checkpoints(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "code_of", lambda _: "")
    for path in node.shelf.paths(".checkpoint"):
        path.unlink()
    assert node.shelf.upkeep() == []
    assert node.shelf.paths(".checkpoint") == []
    assert node.states(node.shelf.entries[400].position) == folded(node.shelf.entries[:401])


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_the_digest_covers_all_code_that_folds(kind: Kind[Any]) -> None:
    """The module of `evolve` imports nothing of the package, besides empty packages, that is not in the digest."""
    module = kind.decider.evolve.__module__
    listed = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('chronolet.')))"
    loaded = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout.split()
    assert module in loaded
    covered = (kind.name, *(part.removesuffix(".py").replace("/", ".") for part in code.SHARED))
    names = tuple(f"chronolet.{name}" for name in covered)
    others = [name for name in loaded if not any(name == one or name.startswith(f"{one}.") for one in names)]
    assert set(others) <= {"chronolet.kernel", "chronolet.kernel.step"}
