"""The contract of archive storages: the folder and the bucket behave alike."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.adapters.archive.places import place
from chronolet.adapters.probes.results.segment_files import ArchivedSegments
from chronolet.history.derived.reading import IndexedArchive
from chronolet.history.derived.upkeep import Upkeep
from chronolet.history.derived.wanted import Wanted
from chronolet.kernel.log import archive as archives
from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet.kernel.log.archive_storage import ArchiveStorage
from chronolet_schemas.envelope import START, Position
from tests.adapters.archive.conftest import Opened
from tests.bench.history.recorded_entries import recorded_entries
from tests.kernel.log.test_archive import entries
from tests.rules.probes.segments.outcomes import segments
from tests.support.s3.server import BUCKET, Service

LARGE = os.urandom(300_000)


def content(storage: ArchiveStorage, name: str, step: int = 70_000) -> bytes:
    with storage.opened(name) as file:
        return b"".join(iter(lambda: file.read(step), b""))


def test_a_new_storage_is_empty(opened: Opened) -> None:
    assert list(opened("run-1").names()) == []
    assert list(opened("run-1").other_runs()) == []


def test_a_file_is_read_back(opened: Opened) -> None:
    storage = opened("run-1")
    storage.put("1-1..2-2.archive", LARGE)
    storage.put("3-3..4-4.archive", b"")
    assert sorted(opened("run-1").names()) == ["1-1..2-2.archive", "3-3..4-4.archive"]
    assert content(opened("run-1"), "1-1..2-2.archive") == LARGE
    assert content(storage, "3-3..4-4.archive") == b""
    storage.put("1-1..2-2.archive", b"other")
    assert content(storage, "1-1..2-2.archive") == b"other"
    assert storage.place("x").endswith("/run-1/x")


def after_the_end(storage: ArchiveStorage) -> bytes | str:
    try:
        return storage.part("a", 300_000, 5)
    except OSError:
        return "error"


def test_a_part_of_a_file_is_read(opened: Opened) -> None:
    storage = opened("run-1")
    storage.put("a", LARGE)
    for offset, size in ((0, 10), (7, 1), (70_001, 150_000), (299_999, 1), (0, 300_000)):
        assert storage.part("a", offset, size) == LARGE[offset : offset + size]
    assert storage.part("a", 299_990, 500) == LARGE[299_990:]
    assert after_the_end(storage) in {b"", "error"}
    with pytest.raises(OSError, match="run-1/gone"):
        storage.part("gone", 0, 5)


def test_a_file_that_is_written_anew_has_another_stamp(opened: Opened) -> None:
    storage = opened("run-1")
    storage.put("a", b"one")
    storage.put("b", b"one")
    before = storage.stamps()
    assert before.keys() == {"a", "b"} == {*storage.names()}
    assert storage.stamps() == before
    storage.put("a", b"two")
    assert storage.stamps()["a"] != before["a"]
    assert storage.stamps()["b"] == before["b"]


def test_indexed_archives_are_read(opened: Opened) -> None:
    """The files of a real agent, whose entries of one pod are read by their index."""
    archive, written = Archive(opened("run-1"), "n", "run-1"), list(recorded_entries())
    archive.write(written[:2_500], START)
    archive.write(written[2_500:], written[2_499].position)
    assert [one.problem for one in Upkeep(archive, list).run()] == ["", ""]
    wanted = Wanted(pod="default/web-3")
    found = list(IndexedArchive(archive).entries(START, written[-1].position, wanted))
    assert [one for one in found if wanted.meets(one)] == [one for one in written if wanted.meets(one)]
    assert len(found) < len(written) / 4
    assert len(IndexedArchive(archive).stored.positions()) == 2


def test_an_index_of_a_longer_file_is_ignored(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file was written anew, by a release that makes other blocks."""
    archive, written = Archive(opened("run-1"), "n", "run-1"), list(recorded_entries())
    with monkeypatch.context() as patch:
        patch.setattr(archives, "BLOCK_ENTRIES", 10)
        archive.write(written, START)
    long = archive.files()[0]
    assert list(Upkeep(archive, list).run())
    archive.write(written, START)
    assert archive.files() == [long]
    wanted = Wanted(pod="default/web-3")
    for at in (START, written[4_700].position):
        found = list(IndexedArchive(archive).entries(at, written[-1].position, wanted))
        assert [one for one in found if wanted.meets(one)] == [
            one for one in written if one.position > at and wanted.meets(one)
        ]
    # The next run notices it.
    assert [one.problem for one in Upkeep(archive, list).run()] == [""]
    assert len(list(IndexedArchive(archive).entries(START, written[-1].position, wanted))) < len(written) / 4


def test_runs_are_separate(opened: Opened) -> None:
    opened("run-1").put("a", b"1")
    opened("run-10").put("b", b"2")
    assert (list(opened("run-1").names()), list(opened("run-10").names())) == (["a"], ["b"])
    assert list(opened("run-1").other_runs()) == ["run-10"]
    assert list(opened("run-3").other_runs()) == ["run-1", "run-10"]


def test_a_damaged_file_is_set_aside(opened: Opened) -> None:
    storage = opened("run-1")
    for text in (b"1", b"2"):
        storage.put("a", text)
        storage.set_aside("a")
    assert list(storage.names()) == ["a.damaged"]
    assert content(storage, "a.damaged") == b"2"


def test_a_file_is_deleted(opened: Opened) -> None:
    storage = opened("run-1")
    storage.delete("never there")
    storage.put("a", b"1")
    storage.put("b", b"2")
    for _ in range(2):
        storage.delete("a")
        assert list(opened("run-1").names()) == ["b"]


def test_a_missing_file_is_an_error_that_names_it(opened: Opened) -> None:
    storage = opened("run-1")
    with pytest.raises(OSError, match="run-1/gone"), storage.opened("gone"):
        pass
    with pytest.raises(OSError, match="run-1/gone"):
        storage.set_aside("gone")


def test_an_archive_is_read_back(opened: Opened) -> None:
    archive, written = Archive(opened("run-1"), "n", "run-1"), entries(1, 3_000)
    archive.write(written[:1_000], START)
    archive.write(written[1_000:], written[999].position)
    assert list(archive.read()) == written
    name = archive.files()[0].name
    archive.check(name)
    archive.storage.put(name, content(archive.storage, name)[:-5])
    with pytest.raises(ArchiveDamaged, match=f"run-1/{name}: truncated"):
        archive.check(name)


def test_files_of_probe_outcomes_are_read_back_and_deleted(opened: Opened) -> None:
    log = Archive(opened("run-1"), "n", "run-1")
    files = ArchivedSegments(log)
    log.write(entries(1, 10), START)
    first = files.write(START, Position(5, 0), segments(3))
    files.write(Position(5, 0), Position(9, 1), segments(1))
    assert list(files.segments(first.name)) == segments(3)
    assert files.read_whole(first.name) == first
    assert [part.last for part in files.parts()] == [Position(5, 0), Position(9, 1)]
    assert len(log.files()) == 1
    files.storage.delete(first.name)
    assert files.missing(Position(5, 0), Position(9, 1)) == []
    assert files.missing(START, Position(9, 1)) == [(START, Position(5, 0))]


@pytest.mark.parametrize("base", ["shared", "root/archive"])
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, base: str) -> None:
    blocked = tmp_path / base
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("a file where the folder should be")
    storage = FolderStorage(blocked, "run-1")
    for act in (storage.names, lambda: storage.put("a", b"1")):
        with pytest.raises(NotADirectoryError, match=base):
            act()


def test_a_bucket_that_does_not_exist_is_named(bucket: str, tmp_path: Path) -> None:
    storage = place("s3://absent/prefix", tmp_path)("run-1")
    with pytest.raises(OSError, match=r"s3://absent/prefix/run-1/a: cannot write: .*(NoSuchBucket|not exist)"):
        storage.put("a", b"1")
    with pytest.raises(OSError, match="s3://absent/prefix/run-1/: cannot list files"):
        storage.names()


def test_a_service_that_is_down_is_an_error_until_it_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Service(tmp_path)
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    storage = place(f"s3://{BUCKET}", tmp_path)("run-1")
    with pytest.raises(OSError, match=f"s3://{BUCKET}/run-1/a: cannot write"):
        storage.put("a", b"1")
    try:
        running.start()
        storage.put("a", b"1")
        assert list(storage.names()) == ["a"]
    finally:
        running.stop()


def test_without_the_client_an_archive_in_a_bucket_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(OSError, match=r"install chronolet\[s3\]"):
        place("s3://logs", tmp_path)("run-1").names()


def test_only_a_bucket_loads_the_client(s3: Service) -> None:
    code = (
        "import sys, pathlib; from chronolet.adapters.archive.places import place;"
        "place('', pathlib.Path('/nowhere'))('r').names(); print('obstore' in sys.modules);"
        "place('s3://logs/p', pathlib.Path('/nowhere'))('r').names(); print('obstore' in sys.modules)"
    )
    environment = {**os.environ, **s3.environment}
    shown = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "True"]
