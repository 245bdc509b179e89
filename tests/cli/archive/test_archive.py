"""`chronolet archive verify` and `repair` on a real redis-server, with and without a keeper that archives meanwhile."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chronolet.cli.services import Services
from chronolet.history.archive_files import repair as repairing
from chronolet.history.archive_files.report import verify
from chronolet.keeper import signals
from chronolet.keeper.effects import KEEPER
from chronolet.kernel.log.archive import Archive
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas.envelope import START
from tests.cli.support.written_node import Result, run
from tests.integration.keeper.support import NODE, PLEG, POD, Desk, desk
from tests.support.redis.server import PrivateRedis

CHUNK = 250
Damage = Callable[[Path], object]


@pytest.fixture
def opened(redis_server: PrivateRedis, tmp_path: Path) -> Iterator[Desk]:
    """A log with four archived chunks. The first two, and about half of the third, are no longer in the stream."""
    with desk(redis_server.url, tmp_path) as at_desk:
        for _ in range(4):
            at_desk.archive_upto(at_desk.write(CHUNK))
        at_desk.keep_up(POD, PLEG, KEEPER)
        trimmed = at_desk.trim(at_desk.written[5 * CHUNK // 2].position)
        assert isinstance(trimmed, signals.TrimDone)
        assert 2 * CHUNK < at_desk.in_stream()[0].position.n < 3 * CHUNK
        yield at_desk


def archive(at_desk: Desk, *arguments: str) -> Result:
    flags = ("--redis", at_desk.url, "--root-dir", str(at_desk.folder), "--hostname-override", NODE)
    return run(Services(), "archive", *arguments, *flags)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def give_to_another_node(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\xa4node\xa1n", b"\xa4node\xa1m"))


DAMAGES = [cut, make_a_folder, Path.unlink, give_to_another_node]


def test_a_sound_archive_is_listed(opened: Desk) -> None:
    assert archive(opened, "index").status == 0
    shown = archive(opened, "verify")
    assert (shown.status, shown.errors) == (0, "")
    *rows, summary = shown.output.splitlines()
    assert [row.split()[3:] for row in rows[1:]] == [["251", "ok"]] + [["250", "ok"]] * 3
    assert [row.split()[0] for row in rows[1:]] == [path.name for path in opened.files()]
    archived, trimmed = opened.store.archived()
    folder = opened.archive.storage.place()
    assert summary == f"{folder}: 4 files, sound; archived up to {archived}, trimmed up to {trimmed}"
    nothing = archive(opened, "repair")
    assert (nothing.status, nothing.output) == (0, f"{folder}: 4 files, nothing to repair\n")


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_the_stream_holds_is_repaired(opened: Desk, damage: Damage) -> None:
    path = opened.files()[3]
    before, kept = path.read_bytes(), sorted(each.name for each in path.parent.iterdir())
    damage(path)
    found = archive(opened, "verify", "-o", "json")
    assert found.status == 1
    shown = json.loads(found.output)
    assert (shown["sound"], bool(shown["missing"]), [bool(file["problem"]) for file in shown["files"][:3]]) == (
        False,
        damage is Path.unlink,
        [False] * 3,
    )
    repaired = archive(opened, "repair")
    assert repaired.status == 0, repaired.output + repaired.errors
    assert f"written anew as {path.name}" in repaired.output
    assert path.read_bytes() == before
    aside = [] if damage is Path.unlink else [f"{path.name}.damaged"]
    assert sorted(each.name for each in path.parent.iterdir()) == sorted([*kept, *aside])
    assert archive(opened, "verify").status == 0
    assert opened.history() == opened.written


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_the_stream_no_longer_holds_is_named(opened: Desk, damage: Damage) -> None:
    part, trimmed = opened.archive.files()[2], opened.store.archived()[1]
    damage(opened.files()[2])
    repaired = archive(opened, "repair")
    assert repaired.status == 1
    before = opened.written[2 * CHUNK].position
    rest = f"{opened.in_stream()[0].position}..{part.last}.archive"
    first = (before.milliseconds, before.n) if damage is Path.unlink else (part.first.milliseconds, part.first.n - 1)
    lost = f"the entries after {first[0]}-{first[1]} up to {trimmed} cannot be repaired: the stream no longer holds"
    assert lost in repaired.output
    assert f"written anew as {rest}" in repaired.output
    assert opened.history(trimmed) == opened.written[trimmed.n :]
    with pytest.raises(HistoryMissing):
        opened.history()
    # Once accepted, the loss is still shown, but no longer as damage.
    accepted = archive(opened, "repair", "--accept-loss")
    assert (accepted.status, "recorded as lost" in accepted.output) == (0, True)
    verified = archive(opened, "verify")
    assert (verified.status, "lost, accepted" in verified.output) == (0, True)
    assert opened.measured().incomplete == ""


def test_a_file_that_cannot_be_repaired_at_all_is_left_alone(opened: Desk) -> None:
    path = opened.files()[0]
    cut(path)
    content = path.read_bytes()
    repaired = archive(opened, "repair")
    assert repaired.status == 1
    assert f"{path.name}: the entries after" in repaired.output
    assert "written anew" not in repaired.output
    assert path.read_bytes() == content
    shown = json.loads(archive(opened, "verify", "-o", "json").output)
    assert (shown["files"][0]["problem"], shown["files"][0]["entries"] > 0) == ("truncated", True)


def test_a_valid_file_with_other_content_is_found_and_repaired(opened: Desk) -> None:
    entries = opened.written[3 * CHUNK + 1 :]
    assert opened.archive.files()[3].first == entries[0].position
    forged = [*entries[:100], entries[100]._replace(subject="container/other"), *entries[101:]]
    opened.archive.write(forged, entries[0].position._replace(n=entries[0].position.n - 1))
    shown = archive(opened, "verify")
    assert (shown.status, f"differs from the stream at {entries[100].position}" in shown.output) == (1, True)
    assert archive(opened, "repair").status == 0
    assert opened.history() == opened.written


def test_an_empty_folder_is_refilled_as_far_as_possible_and_never_trimmed_by_mistake(opened: Desk) -> None:
    shutil.rmtree(opened.archive.storage.place())
    repaired = archive(opened, "repair")
    trimmed = opened.store.archived()[1]
    assert repaired.status == 1
    assert f"the entries after 0-0 up to {trimmed} cannot be repaired" in repaired.output
    assert opened.history(trimmed) == opened.written[trimmed.n :]
    refused = opened.trim(opened.store.archived()[0])
    assert isinstance(refused, signals.JobRefused)
    assert "has no file of the log up to" in refused.error
    assert archive(opened, "repair", "--accept-loss").status == 0
    assert isinstance(opened.trim(opened.store.archived()[0]), signals.TrimDone)


def test_a_large_gap_becomes_several_files(opened: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repairing, "FILE_ENTRIES", 100)
    opened.files()[3].unlink()
    repaired = archive(opened, "repair")
    assert (repaired.status, repaired.output.count("written anew as")) == (0, 3)
    assert opened.history() == opened.written


def test_a_folder_that_cannot_be_written_is_an_error_for_each_file(opened: Desk) -> None:
    path = opened.files()[3]
    path.unlink()
    read_only: Any = ReadOnly(opened)
    repair = repairing.Repair(Archive(read_only, NODE, "run-1"), opened.store)
    (outcome,) = repair.run(verify(opened.archive, opened.store))
    assert (outcome.error, outcome.written) == ("Read-only file system", ())


def test_a_file_that_is_not_given_out_is_left_alone_even_if_losses_are_accepted(opened: Desk) -> None:
    """If the storage cannot be reached, its files are not treated as damaged."""
    storage: Any = Unreachable(opened)
    unreachable = Archive(storage, NODE, "run-1")
    names = [path.name for path in opened.files()]
    report = verify(unreachable, opened.store)
    assert [(file.unreachable, file.problem) for file in report.files] == [
        (True, "not returned by the storage: no reply")
    ] * 4
    outcomes = list(repairing.Repair(unreachable, opened.store, accept_loss=True).run(report))
    assert [outcome.error for outcome in outcomes] == ["left as it is: not returned by the storage: no reply"] * 4
    assert [path.name for path in opened.files()] == names
    assert opened.archive.accepted_losses() == []


class Unreachable:
    """A storage that lists its files but cannot open any of them."""

    def __init__(self, at_desk: Desk) -> None:
        self._storage = at_desk.archive.storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def opened(self, name: str) -> object:
        raise OSError("no reply")


class ReadOnly:
    """A storage on which every write fails."""

    def __init__(self, at_desk: Desk) -> None:
        self._storage = at_desk.archive.storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def put(self, name: str, content: bytes) -> None:
        raise OSError("Read-only file system")


def test_a_keeper_at_work_is_not_disturbed(opened: Desk) -> None:
    """Repairs run on one thread while another one archives and trims; no entry is lost, whichever is faster."""
    stop = threading.Event()
    results: list[Result] = []
    trimming = threading.Lock()
    """While it is held, no file disappears: nothing restores a file whose entries have just been trimmed."""

    def repairs() -> None:
        while not stop.is_set():
            with trimming:
                # It is an older file if the one before was deleted between its writing and its record in the store.
                newest = opened.archive.files()[-1]
                if newest.first > opened.store.archived()[1]:
                    Path(opened.archive.storage.place(newest.name)).unlink(missing_ok=True)
            results.append(archive(opened, "repair"))

    repairer = threading.Thread(target=repairs)
    repairer.start()
    try:
        for _ in range(8):
            goal = opened.store.archived()[0]
            done = opened.archive_upto(opened.write(CHUNK))
            assert isinstance(done, signals.ArchiveDone), done
            opened.keep_up(POD, PLEG, KEEPER)
            with trimming:
                opened.trim(goal)
    finally:
        stop.set()
        repairer.join()
    assert results
    archive(opened, "repair")
    assert archive(opened, "verify").status == 0
    assert opened.history(START) == opened.written


# -- index -------------------------------------------------------------------------------------------------------------
def test_missing_indexes_and_checkpoints_are_written(opened: Desk) -> None:
    folder = Path(opened.archive.storage.place())
    note = "note: 4 of 4 files without a usable index or checkpoint: the agent writes them within minutes, "
    assert archive(opened, "verify").errors == f"{note}`chronolet archive index` at once\n"
    assert len(json.loads(archive(opened, "verify", "-o", "json").output)["unindexed"]) == 4
    written = archive(opened, "index")
    assert (written.status, written.errors) == (0, "")
    *lines, summary = written.output.splitlines()
    assert len(lines) == 8
    assert sorted(line.removesuffix(": written") for line in lines) == sorted(
        path.name for path in folder.iterdir() if path.suffix in {".index", ".checkpoint"}
    )
    assert summary == f"{folder}: 4 files, 8 written, 0 with a problem"
    again = archive(opened, "index")
    assert (again.status, again.output) == (0, f"{folder}: 4 files, 0 written, 0 with a problem\n")
    assert archive(opened, "verify").errors == ""
    assert opened.history() == opened.written


def test_what_cannot_be_indexed_is_named(opened: Desk) -> None:
    path = opened.files()[1]
    cut(path)
    written = archive(opened, "index")
    assert written.status == 1
    assert f"{path.name}: {path}: " in written.output
    assert written.output.splitlines()[-1].endswith(": 4 files, 4 written, 3 with a problem")
    note = (
        "note: 3 of 4 files without an index or checkpoint that cannot be written: the file is damaged, or the states"
    )
    assert archive(opened, "verify").errors == (
        f"{note} where it begins are not known because of damaged, missing or lost entries\n"
    )
    shown = json.loads(archive(opened, "verify", "-o", "json").output)
    assert (shown["unindexed"], len(shown["blocked"])) == ([], 3)
