"""A running upkeep notices what changed in the archive, and does nothing about what cannot change."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import chronolet
from chronolet.adapters.archive.folder import FolderStorage
from chronolet.history.derived import code, upkeep
from chronolet.history.derived.checkpoint import Version
from chronolet.history.derived.upkeep import Outcome, Upkeep, lacks
from chronolet.history.state import state_at
from chronolet.kernel.log.archive import Archive
from chronolet_schemas.envelope import START, Entry, Position
from tests.history.derived.support import NODE, RUN, WEB, Shelf, folded, kinds
from tests.history.derived.test_checkpoints import Node, _summary_with


class CountingStorage(FolderStorage):
    """Counts the files that are read."""

    read = 0

    def opened(self, name: str) -> object:  # type: ignore[override]
        self.read += 1
        return super().opened(name)

    def part(self, name: str, offset: int, size: int) -> bytes:
        self.read += 1
        return super().part(name, offset, size)


class Running:
    """An upkeep of a shelf, like that of an agent."""

    def __init__(self, shelf: Shelf) -> None:
        self.storage = CountingStorage(shelf.folder.parent, RUN)
        self._upkeep = Upkeep(Archive(self.storage, NODE, RUN), kinds, checkpoint_entries=130)

    def run(self) -> list[Outcome]:
        self.storage.read = 0
        return list(self._upkeep.run())

    def settle(self) -> None:
        for _ in range(3):
            self.run()
        assert self.run() == []
        assert self.storage.read == 0


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path, indexed=False)


def names(outcomes: Sequence[Outcome]) -> set[str]:
    return {name for one in outcomes for name in one.written}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:2_000])


def lose(path: Path) -> None:
    path.with_suffix(".lost").touch()
    path.unlink()


@pytest.mark.parametrize("harm", [cut, Path.unlink, lose])
def test_a_file_that_cannot_be_read_costs_nothing_after_it_was_noticed(
    shelf: Shelf, harm: Callable[[Path], None]
) -> None:
    running = Running(shelf)
    first, second, *_, last = shelf.paths(".archive")
    held = last.read_bytes()
    last.unlink()
    harm(second)
    assert any(one.problem for one in running.run())
    running.settle()
    # A new file: only that is read.
    last.write_bytes(held)
    outcomes = running.run()
    assert [one.file for one in outcomes] == [last.name]
    assert running.storage.read < 8
    running.settle()
    assert len(shelf.paths(".index")) == 3
    assert {path.stem.rpartition("-")[2] for path in shelf.paths(".checkpoint")} == {"130", "260", "300"}
    found = lacks(shelf.archive, kinds(), {second.name}, [shelf.entries[299].position] if harm is not cut else [])
    remaining = {path.name for path in shelf.paths(".archive")} - {first.name}
    assert (found.writable, set(found.blocked)) == ([], remaining)


def test_after_a_repair_everything_is_written(shelf: Shelf) -> None:
    running, path = Running(shelf), shelf.paths(".archive")[1]
    content = path.read_bytes()
    path.write_bytes(content[:2_000] + b"\x55\xaa" + content[2_002:])
    running.settle()
    assert len(lacks(shelf.archive, kinds(), {path.name}).blocked) == 3
    path.unlink()  # as a repair does: another file
    path.write_bytes(content)
    running.settle()
    assert lacks(shelf.archive, kinds()) == ([], [])


def test_what_is_deleted_is_written_again(shelf: Shelf) -> None:
    running = Running(shelf)
    running.settle()
    for path in (*shelf.paths(".index"), *shelf.paths(".checkpoint")):
        path.unlink()
    assert not [one.problem for one in running.run() if one.problem]
    assert (len(shelf.paths(".index")), len(shelf.paths(".checkpoint"))) == (4, 10)
    last = shelf.paths(".checkpoint")[-1]
    last.unlink()
    assert names(running.run()) >= {last.name}
    running.settle()


def test_a_checkpoint_that_was_altered_is_written_again(shelf: Shelf) -> None:
    running = Running(shelf)
    running.settle()
    last = shelf.archive.files()[2].last
    path = next(path for path in shelf.paths(".checkpoint") if path.stem == str(last))
    content = path.read_bytes()
    path.write_bytes(content[:-50])
    shelf.paths(".checkpoint")[-1].unlink()
    running.settle()
    assert path.read_bytes() == content
    assert lacks(shelf.archive, kinds()) == ([], [])


def test_a_file_that_is_written_anew_gets_another_index(shelf: Shelf, tmp_path: Path) -> None:
    running = Running(shelf)
    running.settle()
    other = Shelf(tmp_path / "other", block_entries=40, indexed=False)
    path = other.paths(".archive")[1]
    (shelf.folder / path.name).write_bytes(path.read_bytes())
    assert names(running.run()) == {path.stem + ".index"}
    running.settle()


# -- entries of other programs -----------------------------------------------------------------------------------------
def test_there_is_no_checkpoint_at_an_entry_of_another_program(tmp_path: Path) -> None:
    """Its number is arbitrary: the next one does not follow it."""
    node = Node(tmp_path, indexed=False)
    begun = node.shelf.entries[0].position.milliseconds
    log = [one._replace(position=Position(begun + one.position.n, one.position.n)) for one in node.shelf.entries]
    for number in (129, 130, 298, 299, 599, 650):
        log[number] = Entry(Position(log[number].position.milliseconds, 10**6 + number), "", "", "", "", "", b"")
    for path in node.shelf.paths(".archive"):
        path.unlink()
    for begin in (0, 300, 600):
        node.shelf.archive.write(log[begin : begin + 300], Position(begun, begin))
    node.server.log, node.server.last = log[900:], log[-1].position
    node.server.archived = node.server.trimmed = log[899].position
    own = [one for one in log if one.type]
    for indexed in (False, True):
        if indexed:
            running = Running(node.shelf)
            assert not [one.problem for one in running.run() if one.problem]
            running.settle()
            ends = {path.stem for path in node.shelf.paths(".checkpoint")}
            assert ends >= {str(log[number].position) for number in (297, 598, 899)}
            assert ends <= {str(one.position) for one in own}
        for number in (100, 200, 298, 300, 301, 420, 600, 601, 700, 950):
            if log[number - 1].type:
                assert node.states(log[number - 1].position) == folded([one for one in log[:number] if one.type])
        assert node.states(None) == folded(own)


# -- code --------------------------------------------------------------------------------------------------------------
def test_no_checkpoint_is_written_after_an_upgrade_under_the_process(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(shelf)
    with monkeypatch.context() as patch:
        patch.setattr(code, "_shared", lambda: b"other")
        assert upkeep.unchanged is code.unchanged
        outcomes = running.run()
        assert "no longer that of this process" in outcomes[0].problem
        assert shelf.paths(".checkpoint") == []
        running.settle()
    assert len(shelf.paths(".index")) == 4


def test_replaced_code_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronolet, "__path__", [str(tmp_path)])
    for name in ("pod", "rules"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("A = 1")
    versions = {"pod": Version(1, code._digest("pod", code._shared()))}
    assert code.unchanged(versions)
    for name in ("pod", "rules"):
        path = tmp_path / name / "a.py"
        path.write_text("A = 2")
        assert not code.unchanged(versions)
        path.write_text("A = 1")
    assert code.unchanged(versions)
    (tmp_path / "pod" / "a.py").unlink()
    assert not code.unchanged(versions)


# -- reading -----------------------------------------------------------------------------------------------------------
def test_entries_that_cannot_be_decoded_are_named_with_checkpoints_as_without(tmp_path: Path) -> None:
    node = Node(tmp_path, indexed=False)
    for path in node.shelf.paths(".archive"):
        path.unlink()
    log = list(node.shelf.entries)
    for number, entity in ((50, f"pod/{WEB}"), (200, "prober/x"), (410, f"pod/{WEB}"), (705, "pod/default/web-2")):
        log[number] = log[number]._replace(entity=entity, type="pod.NeverHeardOf@1")
    for begin in (0, 300, 600):
        node.shelf.archive.write(log[begin : begin + 300], log[begin - 1].position if begin else START)
    node.server.log, node.server.trimmed = log[900:], log[899].position
    node.server.archived = log[899].position
    asked = [(log[at].position, keys) for at in (60, 320, 500, 800) for keys in (None, {"pod": {WEB}})]

    def unreadable() -> list[Sequence[Position]]:
        return [state_at(node.store, node.archive, kinds(), at, keys=keys).unreadable for at, keys in asked]

    without = unreadable()
    assert [len(one) for one in without] == [1, 1, 2, 2, 3, 3, 4, 3]
    node.shelf.upkeep()
    node.archive.returned = 0
    assert unreadable() == without
    assert 0 < node.archive.returned < 1_000


def test_a_kind_without_a_usable_checkpoint_does_not_concern_the_others(tmp_path: Path) -> None:
    node = Node(tmp_path)
    versions = {kind.name: code.version_of(kind) for kind in kinds()}
    path = next(path for path in node.shelf.paths(".checkpoint") if path.stem.endswith("-600"))
    path.write_bytes(_summary_with(kinds={**versions, "pod": Version(1, "0" * 24)})(path.read_bytes()))
    wanted = {**versions, "kube_events": Version(1, "1" * 24)}
    found = node.archive.checkpoints(node.shelf.entries[610].position, wanted)
    assert {kind: one.position.n for kind, one in found.items()} == {
        kind: 560 if kind == "pod" else 600 for kind in versions
    }
    assert node.archive.checkpoints(node.shelf.entries[10].position, wanted) == {}
