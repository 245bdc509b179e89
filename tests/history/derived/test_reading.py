"""Reading by indexes gives the same as reading everything, whatever is wrong with the indexes."""

import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronolet.history.derived import building, index, sealed
from chronolet.history.derived.sealed import Unusable
from chronolet.history.derived.wanted import EVERYTHING, UNREADABLE, Wanted
from chronolet.kernel.log.archive import ArchiveDamaged
from chronolet_schemas.envelope import START, Entry, Position
from chronolet_schemas.times import time_of, with_time
from tests.history.derived.support import NODE, RUN, WEB, Shelf, bomb, rising

WANTED = {
    "everything": EVERYTHING,
    "a pod": Wanted(pod=WEB),
    "a pod that was never there": Wanted(pod="default/never"),
    "a kind": Wanted(entity=lambda name: name.startswith("prober/")),
    "a type": Wanted(type=lambda name: name.startswith("pod.ContainerStarted")),
    "a type of a pod": Wanted(pod=WEB, type=lambda name: "Exited" in name),
    "a pod or a type": Wanted(alternatives=(Wanted(pod=WEB), Wanted(type=lambda name: "Relist" in name))),
    "a type of a pod or of another one": Wanted(
        type=lambda name: "Exited" in name, alternatives=(Wanted(pod=WEB), Wanted(pod="default/web-2"))
    ),
    "an entity and a type": Wanted(entity=lambda name: name == f"pod/{WEB}", type=lambda name: name.startswith("pod.")),
}
BLOCKS = {"small blocks": 25, "one block, as of an older release": 10_000}


@pytest.fixture(scope="module", params=BLOCKS.values(), ids=BLOCKS.keys())
def shelf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("shelf"), block_entries=request.param)


@pytest.fixture
def copy(tmp_path: Path) -> Shelf:
    """Return a shelf of small blocks that the test may damage."""
    return Shelf(tmp_path)


def check(shelf: Shelf, after: Position, upto: Position, wanted: Wanted) -> list[Entry]:
    """Read a range; whatever else is read, nothing that is wanted is missing, and the last entry is there."""
    found, expected = shelf.read(after, upto, wanted), shelf.between(after, upto, wanted)
    assert rising(found)
    assert [entry for entry in found if wanted.meets(entry)] == expected
    whole = shelf.between(after, upto)
    assert set(found) <= set(whole)
    assert found[-1:] == whole[-1:]
    return found


@pytest.mark.parametrize("name", WANTED)
def test_nothing_that_is_wanted_is_missing(shelf: Shelf, name: str) -> None:
    at = [START, *(shelf.entries[number].position for number in (0, 24, 25, 298, 299, 300, 455, 899, 998, 999))]
    for begin, after in enumerate(at):
        for upto in at[begin:]:
            check(shelf, after, upto, WANTED[name])
    assert shelf.between(START, at[-1], WANTED["a pod"])


def test_little_else_is_read(shelf: Shelf) -> None:
    last = shelf.entries[-1].position
    found = shelf.read(START, last, Wanted(pod=WEB))
    assert len(found) <= len(shelf.between(START, last, Wanted(pod=WEB))) + 1


def test_only_the_blocks_of_the_wanted_entries_are_decompressed(copy: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    storage = copy.archive.storage
    part = storage.part
    monkeypatch.setattr(storage, "part", lambda name, offset, size: read.append(size) or part(name, offset, size))
    monkeypatch.setattr(storage, "opened", _only_indexes(storage.opened))
    at = copy.entries[510].position
    found = copy.read(copy.entries[505].position, at, Wanted(entity=lambda name: name.startswith("pod/")))
    assert found[-1].position == at
    (archive,) = [path for path in copy.paths(".archive") if f"-{301}.." in path.name]
    assert sum(read) < archive.stat().st_size / 4


def _only_indexes(opened: Callable[[str], object]) -> Callable[[str], object]:
    def checked(name: str) -> object:
        assert name.endswith(".index"), name
        return opened(name)

    return checked


def test_entries_that_cannot_be_decoded_are_found(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, entries=0)
    data = {3: b"\xc1", 8: b"\x81\xa3pod", 9: b"\x81\xa3pod\xa1\xff"}
    made = [
        Entry(Position(1_000, n), "pleg.X@1", "pleg/node", "", "p", "", data.get(n, b"\x80")) for n in range(1, 301)
    ]
    shelf.archive.write(made, START)
    shelf.upkeep()
    found = shelf.read(START, made[-1].position, Wanted(pod=UNREADABLE))
    assert [entry.position.n for entry in found] == [*data, 300]


# -- indexes that are wrong --------------------------------------------------------------------------------------------
def _foreign(content: bytes) -> bytes:
    found = index.decode(content)
    return index.encode(replace(found, summary=replace(found.summary, run="run-2")))


def _newer(content: bytes) -> bytes:
    found = index.decode(content)
    return index.encode(replace(found, summary=replace(found.summary, format=index.FORMAT + 1)))


def _with_blocks(change: Callable[[index.Block], dict[str, Any]]) -> Callable[[bytes], bytes]:
    """Change the second block, so that the index contradicts itself."""

    def changed(content: bytes) -> bytes:
        found = index.decode(content)
        first, second, *others = found.blocks
        return index.encode(replace(found, blocks=(first, replace(second, **change(second)), *others)))

    return changed


def _with_summary(**changes: Any) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        found = index.decode(content)
        return index.encode(replace(found, summary=replace(found.summary, **changes)))

    return changed


def _with(**changes: Any) -> Callable[[bytes], bytes]:
    return lambda content: index.encode(replace(index.decode(content), **changes))


def _with_body(body: bytes) -> Callable[[bytes], bytes]:
    return lambda content: sealed.sealed(b"chronolet index 1\n", index.decode_summary(content), body)


WRONG: dict[str, Callable[[bytes], bytes]] = {
    "without blocks": _with(blocks=()),
    "with a block of 2^62 bytes": _with_blocks(lambda _: {"size": 2**62}),
    "with a block of no bytes": _with_blocks(lambda _: {"size": 0}),
    "with a block of negative size": _with_blocks(lambda _: {"size": -5}),
    "with a negative offset": _with_blocks(lambda _: {"offset": -1}),
    "with a huge offset": _with_blocks(lambda block: {"offset": 2**63 - 1 - block.size}),
    "with a block in front of the one before": _with_blocks(lambda _: {"offset": 100}),
    "with a block of other numbers": _with_blocks(lambda block: {"number": block.number + 1}),
    "with a block that lacks lengths": _with_blocks(lambda block: {"lengths": block.lengths[4:]}),
    "with a block without lengths": _with_blocks(lambda _: {"lengths": b""}),
    "with half a length": _with_blocks(lambda block: {"lengths": block.lengths[1:]}),
    "with a block before the first": _with_blocks(lambda _: {"first": (1, 1)}),
    "with a block after the last": _with_blocks(lambda _: {"first": (2**60, 1)}),
    "with 2^40 entries": _with_summary(count=2**40),
    "with no entries": _with_summary(count=0),
    "with another first position": _with_summary(first=(1, 1)),
    "with another last position": _with_summary(last=(2**60, 1)),
    "with a negative position": _with_summary(last=(-1, -1)),
    "a compressed file of gigabytes": _with_body(bomb()),
    "a compressed list of lists": _with_body(zlib.compress(b"\x91" * 200_000)),
    "a list that claims to be long": _with_body(zlib.compress(b"\x82\xa7summary\xc0\xa6blocks\xdd\xff\xff\xff\xff")),
    "truncated": lambda content: content[:-20],
    "truncated in its summary": lambda content: content[:40],
    "empty": lambda content: b"",
    "not an index": lambda content: b"hello" * 100,
    "of another run": _foreign,
    "of a newer format": _newer,
}


@pytest.mark.parametrize("name", WRONG)
def test_an_index_that_cannot_be_used_is_ignored(copy: Shelf, name: str) -> None:
    for path, part in zip(copy.paths(".index"), copy.archive.files(), strict=True):
        path.write_bytes(WRONG[name](path.read_bytes()))
        with pytest.raises(Unusable):
            index.expect(index.decode(path.read_bytes()).summary, NODE, RUN, part)
    check(copy, START, copy.entries[-1].position, WANTED["a pod"])
    check(copy, copy.entries[310].position, copy.entries[620].position, WANTED["a pod"])


SOUND_IN_ITSELF: dict[str, Callable[[bytes], bytes]] = {
    "lengths of 0": _with_blocks(lambda block: {"lengths": bytes(len(block.lengths))}),
    "lengths of gigabytes": _with_blocks(lambda block: {"lengths": b"\xff" * len(block.lengths)}),
    "another checksum": _with_blocks(lambda block: {"crc": block.crc ^ 1}),
    "numbers beyond the end": _with(entities={f"pod/{WEB}": index.differences([3, 2**31])}),
    "half a number": _with(entities={f"pod/{WEB}": b"123"}),
}


@pytest.mark.parametrize("name", SOUND_IN_ITSELF)
def test_an_index_that_lies_about_its_file_is_ignored(copy: Shelf, name: str) -> None:
    for path in copy.paths(".index"):
        path.write_bytes(SOUND_IN_ITSELF[name](path.read_bytes()))
    last = copy.entries[-1].position
    check(copy, START, last, WANTED["a pod"])
    check(copy, copy.entries[310].position, copy.entries[340].position, WANTED["a pod"])
    for number in (1, 330, 1_000):
        assert copy.reader().numbered(number) == copy.entries[number - 1]
    copy.reader().last_until(time_of(copy.entries[700]), copy.entries[10].position, last)
    copy.reader().last_before(copy.entries[330].position)


def test_without_indexes_everything_is_read(copy: Shelf) -> None:
    for path in copy.paths(".index"):
        path.unlink()
    assert check(copy, START, copy.entries[-1].position, WANTED["a pod"]) == list(copy.entries)


def test_the_index_of_another_file_is_ignored(copy: Shelf) -> None:
    first, second, *_ = copy.paths(".index")
    shutil.copy(first, second)
    check(copy, START, copy.entries[-1].position, WANTED["a pod"])


def test_an_index_of_other_content_is_ignored(copy: Shelf, tmp_path: Path) -> None:
    """The file has the same name and entries, but was written with other blocks."""
    other = Shelf(tmp_path / "other", block_entries=40, indexed=False)
    for path in other.paths(".archive"):
        assert path.read_bytes() != (copy.folder / path.name).read_bytes()
        shutil.copy(path, copy.folder / path.name)
    check(copy, START, copy.entries[-1].position, WANTED["a pod"])


@pytest.mark.parametrize("begin", range(13))
def test_a_changed_byte_in_an_index_changes_nothing(copy: Shelf, begin: int) -> None:
    path = copy.paths(".index")[1]
    content = path.read_bytes()
    for at in range(begin, len(content), 13 * 61):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        check(copy, copy.entries[310].position, copy.entries[599].position, WANTED["a pod"])


# -- archive files that are wrong --------------------------------------------------------------------------------------
def test_a_missing_file_between_others_is_named(copy: Shelf) -> None:
    copy.paths(".archive")[1].unlink()
    with pytest.raises(ArchiveDamaged, match="expected event number 301, found"):
        copy.read(START, copy.entries[-1].position, WANTED["a pod"])
    check(copy, copy.entries[599].position, copy.entries[-1].position, WANTED["a pod"])


def test_a_missing_first_file_is_named(copy: Shelf) -> None:
    copy.paths(".archive")[0].unlink()
    with pytest.raises(ArchiveDamaged, match="expected event number 1, found"):
        copy.read(START, copy.entries[-1].position, WANTED["a pod"])


def test_a_damaged_block_that_is_needed_is_named(copy: Shelf) -> None:
    path = copy.paths(".archive")[1]
    content = path.read_bytes()
    path.write_bytes(content[:3000] + b"\x55\xaa\x55\xaa" + content[3004:])
    with pytest.raises(ArchiveDamaged, match=path.name):
        copy.read(START, copy.entries[-1].position, Wanted(entity=lambda name: name.startswith("pod/")))
    check(copy, copy.entries[599].position, copy.entries[-1].position, WANTED["a pod"])


# -- numbers and times -------------------------------------------------------------------------------------------------
def test_an_entry_is_found_by_its_number(shelf: Shelf) -> None:
    for number in (1, 25, 26, 300, 301, 777, 1_000):
        found = shelf.reader().numbered(number)
        assert found is not None
        assert found == shelf.entries[number - 1]
    assert shelf.reader().numbered(1_001) is None


def test_entries_that_are_late_are_found_by_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis's clock was an hour ahead for 6,700 entries, then right again."""
    shelf = Shelf(tmp_path, entries=0)
    made = [Entry(Position(1_000_000 + n, n), "pod.X@1", "pod/a/b", "", "p", "", b"\x80") for n in range(1, 301)]
    ahead = [Entry(Position(4_600_000 + n, n), "pod.X@1", "pod/a/b", "", "p", "", b"\x80") for n in range(301, 7_001)]
    still = [
        Entry(Position(4_607_000, n), "pod.X@1", "pod/a/b", "", "p", "", with_time(b"\x80", 1_001_000 + n))
        for n in range(7_001, 7_101)
    ]
    after = [Entry(Position(4_700_000 + n, n), "pod.X@1", "pod/a/b", "", "p", "", b"\x80") for n in range(7_101, 7_401)]
    for part in (made, ahead, still, after):
        shelf.archive.write(part, part[0].position._replace(n=part[0].position.n - 1))
    moment = time_of(still[49])
    for indexed in (False, True):
        if indexed:
            assert not [one.problem for one in shelf.upkeep() if one.problem]
            # Only the file that has such entries is read.
            monkeypatch.setattr(
                shelf.archive, "entries_of", lambda name, read=shelf.archive.entries_of: _only(name, read)
            )
        found, end = shelf.reader().last_until, after[-1].position
        # Without indexes, no more than 5,000 entries are read.
        unsearched = () if indexed else tuple(part.name for part in reversed(shelf.archive.files()))[:3]
        assert found(moment, ahead[0].position, end) == (still[49].position if indexed else None, unsearched)
        assert found(moment, ahead[5_000].position, still[30].position).position == still[30].position
        assert found(moment, still[60].position, end) == (None, ())
        assert found(1_000_500, ahead[5_000].position, end) == (None, ())


@pytest.mark.parametrize("indexed", [True, False])
def test_a_damaged_file_long_after_a_moment_does_not_matter(tmp_path: Path, *, indexed: bool) -> None:
    shelf = Shelf(tmp_path, entries=0)
    made = [Entry(Position(1_000_000 + n, n), "pod.X@1", "pod/a/b", "", "p", "", b"\x80") for n in range(1, 7_001)]
    for begin in range(0, 7_000, 1_000):
        shelf.archive.write(made[begin : begin + 1_000], made[begin - 1].position if begin else START)
    damaged = shelf.archive.files()[-1]
    path = shelf.folder / damaged.name
    path.write_bytes(path.read_bytes()[:200])
    if indexed:
        shelf.upkeep()
    found = shelf.reader().last_until(1_000_009, made[9].position, made[-1].position)
    assert found == (None, (damaged.name,) if indexed else tuple(part.name for part in shelf.archive.files())[:4:-1])
    with pytest.raises(ArchiveDamaged, match="truncated"):
        shelf.reader().last_until(1_005_000, made[5_000].position, made[-1].position)


def _only(name: str, read: Callable[[str], object]) -> object:
    assert name.startswith("4607000-7001"), name
    return read(name)


# -- building ----------------------------------------------------------------------------------------------------------
def test_the_same_file_gives_the_same_index(copy: Shelf) -> None:
    before = {path.name: path.read_bytes() for path in copy.paths(".index")}
    assert len(before) == 4
    for path in copy.paths(".index"):
        path.unlink()
    copy.upkeep()
    assert {path.name: path.read_bytes() for path in copy.paths(".index")} == before


def test_a_marker_that_occurs_by_chance_is_no_block(tmp_path: Path) -> None:
    """The bytes of a full flush in an entry's data are stored as they are if they cannot be compressed."""
    shelf = Shelf(tmp_path, entries=0)
    noise = bytes(range(256)) * 2
    entries = [
        Entry(
            Position(1_000, n),
            "pod.X@1",
            "pod/a/b",
            "",
            "p",
            "",
            b"\xc5\x02\x04" + noise[n:] + b"\x00\x00\xff\xff" + noise[:n],
        )
        for n in range(1, 60)
    ]
    shelf.archive.write(entries, START)
    (part,) = shelf.archive.files()
    content, offset, count = shelf.archive.content_of(part.name)
    made = building.built(building.Source(NODE, RUN, part, count, content, offset, "f"))
    assert made.summary.count == 59
    shelf.entries = entries
    shelf.upkeep()
    check(shelf, START, entries[-1].position, Wanted(pod="a/b"))


@pytest.mark.parametrize("step", range(7))
def test_a_damaged_file_has_no_index(copy: Shelf, step: int) -> None:
    part = copy.archive.files()[0]
    content, offset, count = copy.archive.content_of(part.name)
    sound = building.built(building.Source(NODE, RUN, part, count, content, offset, "f"))
    damaged = 0
    for at in range(offset + step, len(content), 7 * 29):
        changed = content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]
        try:
            found = building.built(building.Source(NODE, RUN, part, count, changed, offset, "f"))
        except ArchiveDamaged:
            damaged += 1
        else:  # two bytes of the zlib stream's head, or of a flush, may not matter
            assert found.entities == sound.entities
    assert damaged
