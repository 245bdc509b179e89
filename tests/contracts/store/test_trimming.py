"""The contract of the store: snapshots, the archive mark, and trimming the log."""

from chronolet.kernel.storage.store import (
    Fenced,
    Snapshot,
    Store,
)
from chronolet_schemas.envelope import START, Position
from tests.contracts.store.support import KEEPER, OTHER, SHARD, commit, step, take


def test_a_snapshot_only_advances(begun: Store) -> None:
    token = take(begun)
    assert begun.read_snapshots([SHARD]).get(SHARD) is None
    commit(begun, token, 3)
    first, second, third = (entry.position for entry in list(begun.scan(START))[1:])
    one = Snapshot(second, 1, b"\x00one")
    assert begun.snapshot(SHARD, token, one)
    assert not begun.snapshot(SHARD, token, Snapshot(first, 1, b"earlier"))
    assert not begun.snapshot(SHARD, token, Snapshot(first, 2, b"earlier, in another format"))
    assert not begun.snapshot(SHARD, token, Snapshot(second, 1, b"no later"))
    assert begun.read_snapshots([SHARD]).get(SHARD) == one
    assert begun.snapshot(SHARD, token, Snapshot(second, 2, b"two"))
    assert begun.snapshot(SHARD, token, Snapshot(third, 2, b"later"))


def test_a_snapshot_beyond_the_log_is_refused(begun: Store) -> None:
    token = take(begun)
    last = begun.last()
    assert not begun.snapshot(SHARD, token, Snapshot(Position(last.milliseconds, last.n + 1), 1, b""))
    assert begun.read_snapshots([SHARD]).get(SHARD) is None


def test_the_archive_mark_only_advances(begun: Store) -> None:
    token = take(begun, KEEPER)
    assert begun.archived() == (START, START)
    assert begun.mark_archived(KEEPER, token, Position(10, 5))
    assert begun.mark_archived(KEEPER, token, Position(10, 4))
    assert begun.archived() == (Position(10, 5), START)
    assert not begun.mark_archived(KEEPER, "9:stale", Position(11, 5))
    assert begun.archived() == (Position(10, 5), START)


def test_trimming_removes_entries_up_to_the_given_position(long_log: tuple[Store, str, list[Position]]) -> None:
    store, keeper, positions = long_log
    removed = store.trim(KEEPER, keeper, positions[499], [SHARD])
    # A server removes only whole nodes of a stream. By default, a node has 100 entries.
    assert isinstance(removed, int)
    assert 400 <= removed <= 500
    left = [entry.position for entry in store.scan(START)]
    assert left == positions[removed:]
    _, trimmed = store.archived()
    assert positions[removed - 1] <= trimmed < positions[removed]
    assert store.trim(KEEPER, keeper, positions[499], [SHARD]) == 0
    assert store.last() == positions[-1]


def test_trimming_stops_at_the_archive_cursors_and_snapshots(long_log: tuple[Store, str, list[Position]]) -> None:
    store, keeper, positions = long_log
    token = take(store, OTHER)
    assert store.trim(KEEPER, keeper, positions[-1], [SHARD, OTHER]) == 0
    store.step(step(store, token, shard=OTHER, new_log_cursor=positions[700]))
    assert store.trim(KEEPER, keeper, positions[-1], [SHARD, OTHER]) == 0
    store.snapshot(OTHER, token, Snapshot(positions[300], 1, b""))
    removed = store.trim(KEEPER, keeper, positions[-1], [SHARD, OTHER])
    assert isinstance(removed, int)
    assert 201 <= removed <= 301
    store.snapshot(OTHER, token, Snapshot(positions[900], 1, b""))
    more = store.trim(KEEPER, keeper, positions[-1], [SHARD, OTHER])
    assert isinstance(more, int)
    assert 601 <= removed + more <= 701


def test_trimming_stops_at_the_archive(begun: Store) -> None:
    token = take(begun)
    for turn in range(5):
        commit(begun, token, 100, step_id=str(turn))
    keeper = take(begun, KEEPER)
    positions = [entry.position for entry in begun.scan(START)]
    assert begun.trim(KEEPER, keeper, positions[-1], []) == 0
    begun.mark_archived(KEEPER, keeper, positions[299])
    removed = begun.trim(KEEPER, keeper, positions[-1], [])
    assert isinstance(removed, int)
    assert 200 <= removed <= 300


def test_trimming_by_a_stale_keeper_is_fenced(long_log: tuple[Store, str, list[Position]]) -> None:
    store, keeper, positions = long_log
    assert store.trim(KEEPER, "9:stale", positions[-1], []) == Fenced(keeper)
    assert len(list(store.scan(START))) == len(positions)


def test_a_trimmed_log_continues_its_numbers(long_log: tuple[Store, str, list[Position]]) -> None:
    store, keeper, positions = long_log
    store.trim(KEEPER, keeper, positions[-1], [])
    last = store.last()
    token = store.heads([SHARD])[SHARD].token
    assert commit(store, token, step_id="after").at.n == last.n + 1


def test_sizes_of_the_log(long_log: tuple[Store, str, list[Position]]) -> None:
    store, _, positions = long_log
    sizes = store.sizes()
    assert sizes["entries"] == len(positions)
    assert sizes["first_milliseconds"] == positions[0].milliseconds
    assert sizes["last_milliseconds"] == positions[-1].milliseconds
    assert sizes["bytes"] > 0
