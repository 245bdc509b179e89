"""Checks the guarantees after a run, using the log, the workers' call logs and the notes.

Input: entries, the number of commands sent per key, the workers' folder. Output: figures to print; AssertionError if a
guarantee was broken. This module does not know which processes were killed.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import Entry
from chronolet_schemas.keys import shard_for
from tests.kernel import mirror, tally
from tests.kernel.kill.worker import SHARDS


def check_log(entries: Sequence[Entry], sent: Mapping[str, int]) -> Counter[str]:
    """Check that each input changed the states of tally and mirror exactly once and in order, that `n` has no gap, and
    that epochs never decrease. Returns the number of events of each type.
    """
    gap = next((at for at, entry in enumerate(entries) if entry.position.n != at + 1), None)
    assert gap is None, f"n has a gap: {gap} entries are in order, then {[*entries[max(gap - 2, 0) : gap + 3]]}"
    assert all(a.position.milliseconds <= b.position.milliseconds for a, b in pairwise(entries)), "time goes back"
    added, seen = defaultdict(list), defaultdict(list)
    for entry in entries:
        key = entry.entity.partition("/")[2]
        if entry.type == registry.type_of(tally.Added):
            added[key].append((entry, codec.decode(entry.type, entry.data, tally.Added)))
        elif entry.type == registry.type_of(mirror.Seen):
            seen[key].append((entry, codec.decode(entry.type, entry.data, mirror.Seen)))
    assert sorted(added) == sorted(seen) == sorted(sent)
    _check_signals(entries)
    for key, count in sent.items():
        _check_key(key, count, added[key], seen[key])
    _check_tokens(entries)
    return Counter(entry.type.partition("@")[0] for entry in entries)


def _check_key(
    key: str, count: int, added: list[tuple[Entry, tally.Added]], seen: list[tuple[Entry, mirror.Seen]]
) -> None:
    numbers = [event.number for _, event in added]
    assert numbers == list(range(1, count + 1)), f"{key}: sent 1..{count}, the tally has {_difference(numbers, count)}"
    mirrored = [event.number for _, event in seen]
    assert mirrored == numbers, f"{key}: the mirror has {_difference(mirrored, count)}"
    checksum = 0
    for (entry, one), (echo, other) in zip(added, seen, strict=True):
        checksum = tally.chained(checksum, one.number)
        assert one.checksum == other.checksum == checksum, f"{key}: another state at {entry.position}"
        assert one.count == other.count == one.number
        assert entry.cause == f"{key}/{one.number}"
        assert echo.cause == str(entry.position)
        assert echo.position > entry.position


def _check_signals(entries: Sequence[Entry]) -> None:
    """Check that no note was requested or taken twice, and that no timer took effect twice."""
    once = [registry.type_of(event) for event in (tally.NoteTaken, tally.Rested, tally.NoteRequested)]
    times = Counter((entry.type, entry.entity, entry.data) for entry in entries if entry.type in once)
    assert all(count == 1 for count in times.values()), f"twice: {times.most_common(3)}"


def _difference(found: list[int], count: int) -> str:
    twice = sorted(number for number, times in Counter(found).items() if times > 1)
    missing = sorted(set(range(1, count + 1)) - set(found))
    return f"{len(found)}, {len(twice)} of them twice {twice[:9]}, {len(missing)} missing {missing[:9]}"


def _check_tokens(entries: Sequence[Entry]) -> None:
    epochs: dict[str, int] = {}
    for entry in entries:
        shard, _, epoch = entry.actor.partition("#")
        if epoch:
            assert int(epoch) >= epochs.get(shard, 0), f"{entry.position}: {entry.actor} after {epochs[shard]}"
            epochs[shard] = int(epoch)


class Line(NamedTuple):
    """One line of a call log."""

    at: int
    pid: str
    call: str
    shard: str
    token: str
    version: int
    step_id: str

    @property
    def epoch(self) -> int:
        return int(self.token.partition(":")[0])


def calls_of(folder: Path) -> list[Line]:
    """Return all lines of all workers, oldest first."""
    lines = []
    for path in (folder / "calls").iterdir():
        for line in path.read_text().splitlines():
            at, call, shard, token, version, step_id = line.split()
            lines.append(Line(int(at), path.name, call, shard, token, int(version), step_id))
    return sorted(lines)


def check_steps(lines: Sequence[Line], versions: Mapping[str, int], *, lossless: bool) -> Counter[str]:
    """Check that no token committed a step after it was fenced, and that all versions were sent. If `lossless`, also
    check that no version was committed by two steps, that there was no conflict, and that epochs never decrease.
    Returns the number of lines of each call.
    """
    fenced: dict[str, set[str]] = defaultdict(set)
    committed: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    sent: dict[str, set[int]] = defaultdict(set)
    for line in lines:
        if line.call == "sent":
            sent[line.shard].add(line.version)
        elif line.call == "fenced":
            fenced[line.shard].add(line.token)
        elif line.call == "committed":
            assert line.token not in fenced[line.shard], f"{line} was fenced before"
            committed[line.shard][line.version].add(line.step_id)
    for shard, version in versions.items():
        assert set(range(version)) <= sent[shard], f"{shard}: not every version up to {version} was sent"
    counts = Counter(line.call for line in lines)
    if lossless:
        assert counts["conflict"] == 0, "without a loss, no step differs from the server's data"
        assert all(len(ids) == 1 for each in committed.values() for ids in each.values()), "a version committed twice"
        _check_epochs(lines)
    return counts


def _check_epochs(lines: Sequence[Line]) -> None:
    """Check that epochs never decrease from version to version: no stale owner has committed a step."""
    by_shard: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for line in lines:
        if line.call == "committed":
            by_shard[line.shard].append((line.version, line.epoch))
    for shard, pairs in by_shard.items():
        pairs.sort()
        assert all(a[1] <= b[1] for a, b in pairwise(pairs)), f"{shard}: a stale owner has committed"


def check_notes(folder: Path, entries: Sequence[Entry], lines: Sequence[Line], *, lost: int) -> Counter[str]:
    """Check that all notes in the log were written. A note may be written again only if its shard was acquired again,
    or if the server lost the entry with its result (`lost`: the number of lost entries), and never by a process that
    had already lost the shard. Returns figures to print.
    """
    taken = {(e.entity.partition("/")[2], _count(e)) for e in entries if e.type == registry.type_of(tally.NoteTaken)}
    notes = [line.split() for line in (folder / "notes").read_text().splitlines()]
    times = Counter((key, int(count)) for _, _, key, count, _ in notes)
    missing = taken - times.keys()
    assert not missing, f"notes that were never written: {sorted(missing)[:9]}"
    again = sum(times.values()) - len(times)
    owners = _owners(lines)
    # Kills are not counted: a process that gets no CPU time for as long as its lease lasts also loses its shards.
    cut_short = sum(max(0, len(owners[_shard_of(key)]) - 1) for key in {key for key, _ in times})
    assert again <= cut_short + lost, f"{again} notes were repeated where {cut_short} may have been cut short"
    for _, at, key, count, process in notes:
        owner = _owner_at(owners[_shard_of(key)], int(at), process)
        assert owner == process, f"note {key} {count} by {process}, when {owner} had the shard"
    return Counter(taken=len(taken), again=again)


def _shard_of(key: str) -> str:
    return str(shard_for("tally", SHARDS["tally"], key))


def _count(entry: Entry) -> int:
    return codec.decode(entry.type, entry.data, tally.NoteTaken).count


def _owners(lines: Sequence[Line]) -> dict[str, list[tuple[int, str]]]:
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for line in lines:
        if line.call == "acquired":
            found[line.shard].append((line.at, line.token.partition(":")[2]))
    return found


def _owner_at(owners: Sequence[tuple[int, str]], at: int, process: str) -> str:
    """Return the last process that had acquired the shard before `at`; `process` itself if there is none."""
    owner = process
    for acquired_at, process_id in owners:
        if acquired_at < at:
            owner = process_id
    return owner


def longest_recovery(lines: Sequence[Line]) -> float:
    """Return the longest time, in seconds, from acquiring a shard to the first step with the same token."""
    taken = {(line.shard, line.token): line.at for line in lines if line.call == "acquired"}
    first = {(line.shard, line.token): line.at for line in reversed(lines) if line.call == "committed"}
    return max((first[hold] - taken[hold]) / 1e9 for hold in taken.keys() & first.keys())


def losses(entries: Sequence[Entry]) -> int:
    """Return how often an owner recorded that its server had lost the tail of the log."""
    return sum(entry.type == registry.type_of(kernel.TailLost) for entry in entries)
