"""The keeper's workers on a real Redis: no entry is trimmed if a shard needs it or if it cannot be read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from chronolet.keeper import signals, wanted
from chronolet.keeper.effects import KEEPER
from chronolet.kernel.log.archive import Archive
from chronolet.kernel.storage.store import HistoryMissing
from chronolet.node.composition.indexes import Indexes
from chronolet_schemas.envelope import START, Position, Signal
from chronolet_schemas.keys import Keys, Shard
from tests.integration.keeper.support import NEVER_OWNED, NODE, PLEG, POD, Context, Crash, Desk, desk
from tests.support.redis.server import PrivateRedis

CHUNK = 400
WEEK = 7 * 24 * 3600 * 1000
OTHERS = (POD, PLEG, KEEPER)


@pytest.fixture
def at_desk(redis_server: PrivateRedis, tmp_path: Path) -> Iterator[Desk]:
    with desk(redis_server.url, tmp_path) as opened:
        yield opened


@pytest.fixture
def archived(at_desk: Desk) -> tuple[Desk, Position]:
    """Return a log with two chunks in the archive and a third chunk only in the stream, untrimmed; and the end of the
    first chunk.
    """
    first = at_desk.write(CHUNK)
    at_desk.archive_upto(first)
    at_desk.archive_upto(at_desk.write(CHUNK))
    at_desk.write(CHUNK)
    at_desk.keep_up(*OTHERS)
    return at_desk, first


def refused(answer: Signal) -> str:
    assert isinstance(answer, signals.JobRefused), answer
    return answer.error


def removed(answer: Signal) -> int:
    assert isinstance(answer, signals.TrimDone), answer
    return answer.removed


# -- measuring -----------------------------------------------------------------------------------------------------
def test_the_measurement_has_the_logs_state(at_desk: Desk) -> None:
    middle = at_desk.write(50)
    at_desk.keep_up(POD, PLEG)
    at_desk.archive_upto(middle)
    last = at_desk.write(50)
    found = at_desk.measured()
    assert (found.last, found.archived) == (str(last), str(middle))
    assert found.begun_at == at_desk.written[0].position.milliseconds
    # prober/3 never had an owner, so it does not hold back trimming; the keeper has no snapshot yet, so it needs every
    # entry.
    assert found.needed == {"pod/0": str(middle), "pleg": str(middle), "keeper": "0-0"}
    assert found.unowned == {}


def test_shards_whose_owner_was_killed_or_handed_over_are_measured(at_desk: Desk) -> None:
    at_desk.take(NEVER_OWNED, "killed")  # this process never had a lease, so it counts as dead
    at_desk.store.retire("p", [(PLEG, at_desk.tokens[PLEG])])
    at_desk.store.renew("p", "everything", 600_000)
    found = at_desk.measured()
    assert set(found.unowned) == {"prober/3", "pleg"}
    assert all(at_desk.now - 60_000 < since <= at_desk.now for since in found.unowned.values())
    assert set(found.needed) == {"pod/0", "pleg", "keeper", "prober/3"}
    at_desk.take(PLEG)
    assert set(at_desk.measured().unowned) == {"prober/3"}


# -- archiving -----------------------------------------------------------------------------------------------------
def test_archive_and_stream_are_one_history_at_every_stage(at_desk: Desk) -> None:
    rounds, ends = 4, [START]
    for _ in range(rounds):
        ends.append(at_desk.write(CHUNK))
        assert isinstance(at_desk.archive_upto(ends[-1]), signals.ArchiveDone)
        at_desk.keep_up(*OTHERS)
        at_desk.trim(ends[-2])
        assert at_desk.history() == at_desk.written
    assert len(at_desk.written) == rounds * CHUNK + 1
    assert len(at_desk.files()) == rounds
    assert CHUNK <= len(at_desk.in_stream()) < 2 * CHUNK
    assert len(list(at_desk.archive.read())) == rounds * CHUNK + 1
    # The history can also be read from positions within each part.
    for start in at_desk.written[:: CHUNK // 3]:
        assert at_desk.history(start.position) == at_desk.written[start.position.n :]


ARCHIVE_POINTS = ("1 before archive.write", "2 after archive.write", "3 before archive.mark", "4 after archive.mark")


@pytest.mark.parametrize("point", ARCHIVE_POINTS)
def test_an_interrupted_archive_file_is_written_again_under_the_same_name(at_desk: Desk, point: str) -> None:
    first = at_desk.write(CHUNK)
    with pytest.raises(Crash):
        at_desk.archive_part("0-0", first, point)
    before = {path: path.read_bytes() for path in at_desk.files()}
    at_desk.write(50)  # the log has grown by the time the next process repeats the job
    answer = at_desk.archive_part("0-0", first)
    assert isinstance(answer, signals.ArchiveDone)
    assert (answer.events, answer.first, answer.last) == (CHUNK + 1, str(at_desk.written[0].position), str(first))
    after = {path: path.read_bytes() for path in at_desk.files()}
    assert len(after) == 1
    assert before in ({}, after)
    assert at_desk.store.archived() == (first, START)
    at_desk.archive_upto(at_desk.write(50))
    at_desk.keep_up(*OTHERS)
    assert removed(at_desk.trim(first)) > 0
    assert at_desk.history() == at_desk.written


def test_an_incomplete_file_does_not_count(at_desk: Desk) -> None:
    first = at_desk.write(CHUNK)
    folder = Path(at_desk.archive.storage.place())
    folder.mkdir(parents=True)
    folder.joinpath("1-1..2-2.archive.keeper.new").write_bytes(b"torn")
    assert isinstance(at_desk.archive_upto(first), signals.ArchiveDone)
    assert list(at_desk.archive.read()) == at_desk.written


def test_a_keeper_that_lost_its_shard_marks_and_trims_nothing(archived: tuple[Desk, Position]) -> None:
    at_desk, first = archived
    stale = at_desk.tokens[KEEPER]
    at_desk.take(KEEPER)
    at_desk.tokens[KEEPER] = stale
    marks = at_desk.store.archived()
    assert refused(at_desk.archive_upto(at_desk.written[-1].position)) == "the keeper has a new owner"
    assert refused(at_desk.trim(first)) == "the keeper has a new owner"
    assert at_desk.store.archived() == marks
    assert at_desk.in_stream() == at_desk.written


def test_an_unwritable_folder_is_reported(at_desk: Desk) -> None:
    (at_desk.folder / "archive").write_text("a file where the folder should be")
    assert "archive" in refused(at_desk.archive_upto(at_desk.write(CHUNK)))
    assert at_desk.store.archived() == (START, START)


# -- trimming ------------------------------------------------------------------------------------------------------
def test_archived_entries_that_no_shard_needs_are_trimmed(archived: tuple[Desk, Position]) -> None:
    at_desk, first = archived
    answer = at_desk.trim(first)
    # Only whole nodes of the stream are removed, so a few entries may remain.
    assert CHUNK - 100 < removed(answer) <= CHUNK + 1
    assert len(at_desk.in_stream()) == len(at_desk.written) - removed(answer)
    assert isinstance(answer, signals.TrimDone)
    assert Position.parse(answer.upto) == at_desk.store.archived()[1] <= first
    assert at_desk.history() == at_desk.written


def test_nothing_is_trimmed_beyond_the_archive(at_desk: Desk) -> None:
    first = at_desk.write(CHUNK)
    at_desk.archive_upto(first)
    last = at_desk.write(CHUNK)
    at_desk.keep_up(*OTHERS)
    assert "ends where the log has" in refused(at_desk.trim(last))
    assert at_desk.in_stream() == at_desk.written


@pytest.mark.parametrize("snapshots", [True, False])
def test_nothing_is_trimmed_beyond_a_cursor_or_a_snapshot(at_desk: Desk, snapshots: bool) -> None:
    at_desk.keep_up(*OTHERS)
    at_desk.write(CHUNK // 2)
    at_desk.keep_up(PLEG, snapshots=snapshots)
    pleg_is_here = at_desk.written[-1].position
    first = at_desk.write(CHUNK)
    at_desk.archive_upto(first)
    at_desk.keep_up(POD, KEEPER)
    gone = removed(at_desk.trim(first))
    assert (0 < gone <= pleg_is_here.n) if snapshots else gone == 0
    assert at_desk.history() == at_desk.written
    at_desk.keep_up(PLEG)
    assert removed(at_desk.trim(first)) > CHUNK // 2


def test_a_released_shard_holds_back_no_trimming_until_it_has_an_owner(archived: tuple[Desk, Position]) -> None:
    at_desk, first = archived
    at_desk.take(NEVER_OWNED, "killed")
    assert removed(at_desk.trim(first)) == 0
    at_desk.take(NEVER_OWNED, "p")
    assert removed(at_desk.trim(first, let_go=("prober/3",))) == 0
    at_desk.take(NEVER_OWNED, "killed again")
    assert removed(at_desk.trim(first, let_go=("prober/3",))) > 0
    assert at_desk.history() == at_desk.written


def test_a_shard_beyond_the_usual_number_holds_back_trimming(
    archived: tuple[Desk, Position], redis_server: PrivateRedis
) -> None:
    """The number of shards of a kind may change (docs/adr/0043)."""
    at_desk, first = archived
    redis_server.client().hset(Keys(NODE).meta, "shards:prober", "8")
    at_desk.take(Shard("prober", 6))
    assert "prober/6" in at_desk.measured().needed
    assert removed(at_desk.trim(first)) == 0


@pytest.mark.parametrize("point", ["1 before log.trim", "2 before log.trim", "3 after log.trim"])
def test_an_interrupted_trim_is_repeated(archived: tuple[Desk, Position], point: str) -> None:
    at_desk, first = archived
    with pytest.raises(Crash):
        at_desk.trim(first, point)
    assert at_desk.history() == at_desk.written
    died_after = point.startswith("3")
    assert (removed(at_desk.trim(first)) == 0) == died_after
    assert len(at_desk.in_stream()) < len(at_desk.written)
    assert at_desk.history() == at_desk.written


# -- damage --------------------------------------------------------------------------------------------------------
def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-500])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-len(content) // 3] ^= 0x55
    path.write_bytes(bytes(content))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [cut, flip, empty, make_a_folder])
def test_a_damaged_file_is_named_and_nothing_is_trimmed(archived: tuple[Desk, Position], damage: object) -> None:
    at_desk, first = archived
    path = at_desk.files()[0]
    assert callable(damage)
    damage(path)
    error = refused(at_desk.trim(first))
    assert error.startswith("not trimmed: the archive could not be verified: ")
    assert str(path) in error
    assert at_desk.in_stream() == at_desk.written
    assert at_desk.history() == at_desk.written


def test_a_missing_file_prevents_trimming(archived: tuple[Desk, Position]) -> None:
    at_desk, first = archived
    at_desk.files()[0].unlink()
    assert f"ends where the log has {at_desk.written[0].position}" in refused(at_desk.trim(first))
    assert at_desk.in_stream() == at_desk.written


def test_a_valid_file_with_other_content_prevents_trimming(archived: tuple[Desk, Position]) -> None:
    at_desk, first = archived
    entries = at_desk.written[: first.n]
    forged = [*entries[:100], entries[100]._replace(subject="container/other"), *entries[101:]]
    assert at_desk.archive.write(forged, START).name == at_desk.files()[0].name
    assert f"where the log has {entries[100].position}" in refused(at_desk.trim(first))
    assert at_desk.in_stream() == at_desk.written


@pytest.mark.parametrize("damage", [cut, flip, empty, make_a_folder])
def test_a_file_damaged_after_the_trim_is_named_to_readers(archived: tuple[Desk, Position], damage: object) -> None:
    at_desk, first = archived
    assert removed(at_desk.trim(first)) > 0
    assert callable(damage)
    damage(at_desk.files()[0])
    with pytest.raises(HistoryMissing) as missing:
        at_desk.history()
    assert str(at_desk.files()[0]) in str(missing.value)
    # Entries after the damage can still be read.
    assert at_desk.history(first) == at_desk.written[first.n :]


def test_the_archive_of_another_node_is_not_used(archived: tuple[Desk, Position]) -> None:
    at_desk, first = archived
    Archive(at_desk.archive.storage, "other", "run-1").write(at_desk.written[: first.n], START)
    assert "header has node 'other', expected 'n'" in refused(at_desk.trim(first))


def test_the_list_of_nodes(at_desk: Desk, redis_server: PrivateRedis) -> None:
    at_desk.store.announce("here I am")
    assert redis_server.client().hgetall("chronolet:nodes") == {NODE.encode(): b"here I am"}


# -- indexes -------------------------------------------------------------------------------------------------------
def indexed_once(at_desk: Desk, context: Context) -> None:
    """Run the effect until it has looked through the archive once."""

    def until_done(archive: Archive, pause: Callable[[], None]) -> Iterator[str]:
        yield from Indexes()(archive, pause)
        context.cancelled.set()

    keeping = msgspec.structs.replace(at_desk.keeping, indexed=until_done, measure_seconds=0.01, pause_seconds=0.0)
    keeping.index(wanted.IndexArchive(subject="indexes", intent="indexes"), context)


def test_new_archive_files_get_an_index_and_a_checkpoint(at_desk: Desk) -> None:
    for _ in range(2):
        at_desk.archive_upto(at_desk.write(250))
    indexed_once(at_desk, Context(at_desk.tokens[KEEPER]))
    suffixes = Counter(path.suffix for path in at_desk.files()[0].parent.iterdir())
    assert suffixes == {".archive": 2, ".index": 2, ".checkpoint": 2}
    assert at_desk.history() == at_desk.written


def test_a_keeper_that_lost_its_shard_stops_indexing(at_desk: Desk) -> None:
    at_desk.archive_upto(at_desk.write(250))
    context = Context(at_desk.tokens[KEEPER], "2 before archive.index")
    with pytest.raises(Crash):
        indexed_once(at_desk, context)
    assert [path.suffix for path in at_desk.files()[0].parent.iterdir()] == [".archive"]
    indexed_once(at_desk, Context(at_desk.tokens[KEEPER]))
    assert len(list(at_desk.files()[0].parent.iterdir())) == 3


def test_without_a_usable_archive_there_is_no_index_and_no_error(at_desk: Desk) -> None:
    at_desk.archive_upto(at_desk.write(250))
    path = at_desk.files()[0]
    path.write_bytes(path.read_bytes()[:-20])
    indexed_once(at_desk, Context(at_desk.tokens[KEEPER]))
    assert [each.suffix for each in path.parent.iterdir()] == [".archive"]
