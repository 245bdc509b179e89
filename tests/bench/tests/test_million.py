"""The long history of the benchmark is one that an agent could have written."""

import itertools

from chronolet_schemas import codec
from chronolet_schemas.envelope import Event, Position
from tests.bench.history.million import COPIES, long_history
from tests.bench.history.recorded_entries import recorded_entries

ENTRIES = 40_000
WEEK = 7 * 24 * 3_600_000
FIRST = recorded_entries()[0].position.milliseconds
LENGTH = recorded_entries()[-1].position.milliseconds - FIRST
HISTORY = list(long_history(recorded_entries(), ENTRIES, WEEK))


def test_positions_have_no_gap_and_never_go_back() -> None:
    assert [entry.position.n for entry in HISTORY] == list(range(1, ENTRIES + 1))
    times = [entry.position.milliseconds for entry in HISTORY]
    assert times == sorted(times)
    assert times[0] == FIRST - WEEK


def test_the_same_events_are_repeated_by_other_pods() -> None:
    pods = {entry.entity for entry in HISTORY if entry.entity.startswith("pod/")}
    assert pods == {f"pod/default/web-{number:02}" for number in range(10 * COPIES)}
    for entry in HISTORY:
        codec.decode(entry.type, entry.data, Event)  # raises Undecodable
    recorded = [entry.type for entry in recorded_entries() if entry.entity == "pod/default/web-3"]
    whole = [entry.type for entry in HISTORY if entry.entity == "pod/default/web-03"]
    assert whole[: len(recorded)] == recorded


def test_causes_are_entries_of_the_same_copy() -> None:
    by_position = {str(entry.position): entry for entry in HISTORY}
    caused = [entry for entry in HISTORY if entry.cause.count("-") == 1 and entry.cause[0].isdigit()]
    assert len(caused) > len(HISTORY) / 2
    known = [entry for entry in caused if entry.cause in by_position]
    assert len(known) > 0.99 * len(caused)
    assert all(by_position[entry.cause].position < entry.position for entry in known)


def test_times_in_events_move_with_the_positions() -> None:
    started = [entry for entry in HISTORY if entry.type == "pod.ContainerStarted@1"]
    assert len(started) > 100
    for entry in started:
        at = codec.decode(entry.type, entry.data, Event).started_at  # type: ignore[attr-defined]
        assert abs(at - entry.position.milliseconds) < LENGTH


def test_uids_differ_between_copies() -> None:
    """Each pod has one uid in a copy, however often its file is put there: that of its content."""
    accepted = [entry for entry in HISTORY if "SpecAccepted" in entry.type]
    uids = {codec.decode(entry.type, entry.data, Event).uid for entry in accepted}  # type: ignore[attr-defined]
    pods = {entry.entity for entry in accepted}
    assert len(pods) == 100
    assert len(uids) > len(pods)
    assert len(uids) % 10 == 0


def test_a_longer_history_begins_with_the_shorter_one() -> None:
    assert list(long_history(recorded_entries(), 500, WEEK)) == HISTORY[:500]
    assert Position(FIRST - WEEK, 1) == HISTORY[0].position
    assert all(a.position < b.position for a, b in itertools.pairwise(HISTORY))
