"""Which entries a new shard skips: exactly those that a former shard of the entity has decided."""

from hypothesis import given
from hypothesis import strategies as st

from chronolet.kernel.step.inherited import still_needed, undecided
from chronolet.kernel.step.input import Input
from chronolet_schemas.envelope import START, Position
from chronolet_schemas.keys import shard_for

positions = st.integers(0, 30).map(lambda n: Position(n // 3, n))
tables = st.lists(positions, min_size=1, max_size=5).map(tuple)
keys = st.lists(st.sampled_from([f"k{n}" for n in range(9)]), unique=True, max_size=4).map(tuple)


def entry(at: Position, *names: str) -> Input:
    return Input("log", at, names, None, str(at), "tally.Added@1")


@given(at=positions, names=keys.filter(len), decided=st.lists(tables, max_size=3).map(tuple))
def test_an_entry_remains_for_the_entities_that_have_not_decided_it(
    at: Position, names: tuple[str, ...], decided: tuple[tuple[Position, ...], ...]
) -> None:
    def has_decided(key: str) -> bool:
        return any(at <= table[shard_for("tally", len(table), key).index or 0] for table in decided)

    left = undecided(entry(at, *names), "tally", decided)
    assert (left.keys if left else ()) == tuple(key for key in names if not has_decided(key))


def test_without_tables_everything_remains() -> None:
    assert undecided(entry(Position(1, 1), "a"), "tally", ()) == entry(Position(1, 1), "a")


def test_an_entry_that_cannot_be_routed_belongs_to_the_first_shard() -> None:
    decided = ((Position(1, 5), Position(1, 9)),)
    assert undecided(entry(Position(1, 5)), "tally", decided) is None
    assert undecided(entry(Position(1, 6)), "tally", decided) == entry(Position(1, 6))


@given(cursor=positions, decided=st.lists(tables, max_size=3).map(tuple), at=positions, names=keys.filter(len))
def test_a_table_that_is_dropped_would_have_decided_nothing(
    cursor: Position, decided: tuple[tuple[Position, ...], ...], at: Position, names: tuple[str, ...]
) -> None:
    if at > cursor:
        kept = still_needed(decided, cursor)
        assert undecided(entry(at, *names), "tally", kept) == undecided(entry(at, *names), "tally", decided)


def test_a_table_no_later_than_the_cursor_is_dropped() -> None:
    early, late = (START, Position(1, 2)), (Position(1, 3), START)
    assert still_needed((early, late), Position(1, 2)) == (late,)
