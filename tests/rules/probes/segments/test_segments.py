"""Segments have every outcome that was recorded, in at most three bytes each, and refuse any other content."""

from __future__ import annotations

import zlib
from array import array
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.adapters.probes.results.segment_writer import SEGMENT_BYTES
from chronolet.rules.probes.segments.encoding import SegmentDamaged, columns, decode, encode, from_plain
from chronolet.rules.probes.segments.merging import merged
from chronolet.rules.probes.segments.recorder import Recorder
from chronolet.rules.probes.segments.segment import Lost, Run, Segment, duration, duration_code
from chronolet_schemas.prober import RawResult
from tests.rules.probes.segments.outcomes import HOUR, PODS, T0, busy_hour, listed, outcome

LIMIT = 50
MINUTE = 60_000


def recorder() -> Recorder:
    return Recorder(T0, LIMIT)


def recorded(*results: RawResult, process: str = "p", now: int = T0) -> Segment:
    made = recorder()
    for one in results:
        made.take(one, now)
    return made.close(process, now + MINUTE)


def runs(segment: Segment) -> list[Run]:
    return [run for of_probe in segment.runs.values() for run in of_probe]


texts = st.text(max_size=8)
results = st.builds(
    outcome,
    at=st.integers(0, 2**47),
    pod=st.sampled_from(("default/a", "default/b")),
    probe=st.sampled_from(("Liveness", "Readiness")),
    attempt=st.sampled_from(("", "0", "7")),
    outcome=st.sampled_from(("success", "failure", "unjudged")),
    code=st.sampled_from(("", "200")),
    output=st.sampled_from(("", "ok", "\u00e9\n")) | texts,
    milliseconds=st.integers(0, 2**40).map(str),
)


@given(st.lists(results, max_size=40), st.booleans())
def test_a_segment_is_read_as_it_was_written(given: list[RawResult], ended: bool) -> None:
    made = recorder()
    for one in given:
        made.take(one, T0)
    made.drop(Lost(T0, T0 + 5, 3))
    segment = made.close("p", T0 + MINUTE, ended=ended)
    assert decode(encode(segment)) == segment
    assert segment.outcomes == len(given)


@given(st.lists(results, min_size=1, max_size=40))
def test_every_outcome_is_recorded_with_its_time(given: list[RawResult]) -> None:
    found = Counter((one[0], one[5], one[6], one[7], one[8]) for one in listed([recorded(*given)]))
    assert found == Counter((one.pod, one.probe, one.outcome, one.code, int(one.at)) for one in given)


@given(st.lists(results, max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_merged_segments_have_the_same_outcomes(given: list[RawResult], ends: list[int]) -> None:
    made, parts = recorder(), list[Segment]()
    for number, one in enumerate(given):
        if number in ends:
            parts.append(made.close("p", T0))
        made.take(one, T0)
    parts.append(made.close("p", T0, ended=True))
    expected, twice = sorted(listed(parts)), [decode(encode(one)) for part in parts for one in (part, part)]
    (whole,) = merged(twice)
    assert sorted(listed([whole])) == expected
    assert (whole.number, whole.upto, whole.before, whole.ended) == (1, len(parts), 0, True)


def test_equal_outcomes_are_one_run() -> None:
    failed = {"outcome": "failure", "output": "refused"}
    given = (
        outcome(T0),
        outcome(T0 + 10_003),
        outcome(T0 + 20_001, output="another"),
        outcome(T0 + 30_000, **failed),
        outcome(T0 + 40_000, **failed),
        outcome(T0 + 50_000, **failed | {"output": "reset"}),
        outcome(T0 + 60_000, code="201"),
    )
    found = runs(recorded(*given))
    assert [(one.outcome, one.code, one.output, len(one.starts), one.differing) for one in found] == [
        ("success", "200", "ok", 3, 1),
        ("failure", "200", "refused", 2, 0),
        ("failure", "200", "reset", 1, 0),
        ("success", "201", "ok", 1, 0),
    ]
    assert list(found[0].starts) == [T0, T0 + 10_003, T0 + 20_001]


def test_runs_of_two_segments_count_the_outputs_that_may_differ() -> None:
    made, parts = recorder(), []
    for texts in (("a", "b"), ("a", "c"), ("c", "a")):
        for text in texts:
            made.take(outcome(output=text), T0)
        parts.append(made.close("p", T0))
    (run,) = runs(merged(parts)[0])
    assert (run.output, len(run.starts), run.differing) == ("a", 6, 1 + 1 + 2)


def test_outputs_are_cut_and_can_always_be_encoded() -> None:
    (run,) = runs(decode(encode(recorded(outcome(output="\udce9" + "x" * 100)))))
    assert run.output == "?" + "x" * (LIMIT - 1)


def test_the_recorder_numbers_its_segments_and_counts_outcomes_and_losses() -> None:
    made = recorder()
    assert (made.is_open, made.has_written, made.size) == (False, False, 0)
    made.take(outcome(), T0 + 5)
    small = made.size
    made.take(outcome(output="ok"), T0 + 6)
    assert (made.is_open, small < made.size < small + 5) == (True, True)
    first = made.close("p", T0 + 9)
    assert (first.number, first.begin, first.end, first.before, first.outcomes) == (1, T0 + 5, T0 + 9, 0, 2)
    assert (made.is_open, made.has_written, made.size) == (False, True, 0)
    made.drop(Lost(7, 8, 2))
    assert not made.is_open
    made.take(outcome(), T0 + 10)
    made.drop(Lost(5, 6, 1))
    second = made.close("p", T0 + 12)
    assert (second.number, second.begin, second.before, second.lost) == (2, T0 + 10, 2, Lost(5, 8, 3))
    last = made.close("p", T0 + 13, ended=True)
    assert (last.number, last.begin, last.outcomes, last.ended) == (3, T0 + 13, 0, True)


def test_a_missing_segment_is_not_papered_over() -> None:
    made, parts = recorder(), []
    for number in range(4):
        made.take(outcome(T0 + number), T0)
        parts.append(made.close("p", T0))
    other = recorded(outcome(T0 + 9), process="q")
    found = merged([parts[0], other, parts[2], parts[3]])
    assert [(one.process, one.number, one.upto, one.outcomes) for one in found] == [
        ("p", 1, 1, 1),
        ("q", 1, 1, 1),
        ("p", 3, 4, 2),
    ]


def test_losses_and_new_probes_of_merged_segments_are_kept() -> None:
    made, parts = recorder(), []
    for number in range(3):
        made.take(outcome(T0 + number, id=f"c{number}"), T0)
        if number != 1:
            made.drop(Lost(number, number, 1))
        parts.append(made.close("p", T0 + number))
    (whole,) = merged(parts)
    assert whole.lost == Lost(0, 2, 2)
    assert [key.id for key in whole.runs] == ["c0", "c1", "c2"]
    assert whole.end == T0 + 2


@given(st.integers(0, 10**9))
def test_durations_are_kept_to_a_tenth(milliseconds: int) -> None:
    assert abs(duration(duration_code(milliseconds)) - milliseconds) <= max(0.1 * milliseconds, 0.5)


def test_extreme_durations_have_a_code() -> None:
    assert (duration_code(-5), duration(0), duration_code(2**100)) == (0, 0, 255)


def test_an_hour_takes_at_most_three_bytes_an_outcome() -> None:
    """Each minute is a segment; the file of the hour has all of them."""
    made, parts, due = recorder(), [], T0 + MINUTE
    given = busy_hour()
    for one in given:
        while int(one.at) >= due:
            parts.append(decode(encode(made.close("node-1-4711", due))))
            due += MINUTE
        made.take(one, due - MINUTE)
    parts.append(made.close("node-1-4711", T0 + HOUR, ended=True))
    assert len(given) > PODS * 900
    (hour,) = merged(parts)
    assert hour.outcomes == len(given)
    assert len(encode(hour)) / len(given) < 2


# -- bad input ---------------------------------------------------------------------------------------------------------
GOOD = recorded(*(outcome(T0 + number, output=f"{number // 2}", outcome="failure") for number in range(5)))


def damaged(**changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.msgpack.decode(msgspec.msgpack.encode(columns(GOOD)))
    assert changes.keys() <= content.keys()
    return content | changes


def test_the_columns_of_a_segment_are_plain() -> None:
    found = from_plain(damaged())
    assert found == GOOD
    assert [list(run.starts) for run in runs(found)] == [[T0, T0 + 1], [T0 + 2, T0 + 3], [T0 + 4]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format 2, expected 1"),
        ({"number": 0}, "check 1"),
        ({"upto": 0}, "check 1"),
        ({"probes": []}, "check 2"),
        ({"probes": [("p", "u", "c", 0, "i", "x")] * 2, "runs": [2, 1]}, "check 2"),
        ({"runs": [4]}, "check 3"),
        ({"interval": [1, 2]}, "check 3"),
        ({"result": [0, 0, 1]}, "check 4"),
        ({"text": [0, 1, 3]}, "check 5"),
        ({"count": [5, 0, 0]}, "check 6"),
        ({"count": [2, 2, 2]}, "check 7"),
        ({"took": b""}, "check 7"),
        ({"outcomes": 6}, "check 7"),
        ({"step": [0]}, "check 8"),
        ({"count": [2, 2, -1]}, "cannot be decoded"),
        ({"took": 5}, "cannot be decoded"),
        ({"start": [2**63, 0, 0]}, "out of range"),
        ({"start": [-T0 - 1, 0, 0]}, "out of range"),
        ({"start": [2**60, 0, 0]}, "out of range"),
        ({"end": 2**60}, "cannot be decoded"),
        ({"lost": (1, 2**60, 1)}, "cannot be decoded"),
        ({"lost": (1, 2, 2**63)}, "cannot be decoded"),
        ({"differing": [2**63, 0, 0]}, "cannot be decoded"),
    ],
)
def test_columns_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    content = damaged(**changes)
    with pytest.raises(SegmentDamaged, match=message):
        from_plain(content)
    with pytest.raises(SegmentDamaged, match=message):
        decode(zlib.compress(msgspec.msgpack.encode(content)))


@given(st.data())
def test_damaged_bytes_are_refused_or_harmless(data: st.DataObject) -> None:
    good = bytearray(msgspec.msgpack.encode(columns(GOOD)))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode(zlib.compress(bytes(good)))
    except SegmentDamaged:
        return
    assert found.outcomes == 5


@pytest.mark.parametrize("data", [b"", b"text", encode(GOOD)[:-1], zlib.compress(b""), zlib.compress(b"\x01")])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(SegmentDamaged):
        decode(data)


def test_a_segment_that_grows_without_bound_is_refused() -> None:
    with pytest.raises(SegmentDamaged, match="larger than"):
        decode(zlib.compress(bytes(5 << 20)))


def test_deeply_nested_bytes_are_refused() -> None:
    content = msgspec.msgpack.encode(damaged() | {"later": None})
    assert content.endswith(b"\xc0")
    with pytest.raises(SegmentDamaged, match="cannot be decoded"):
        decode(zlib.compress(content[:-1] + b"\x91" * 200_000 + b"\xc0"))


def test_the_largest_segment_of_a_process_can_be_decoded() -> None:
    """The costliest outcomes: each is a run of its own, of a probe with long names, or with a long output."""
    for changes in ({"output": ""}, {"output": "\U0001f600" * 1024}, {"pod": "n" * 63 + "/" + "p" * 253}):
        made, number = Recorder(T0, 1024), 0
        while made.size < SEGMENT_BYTES:
            outcomes = ("failure", "unknown")[number % 2]
            names = {"id": f"{number}"} if "pod" in changes else {}
            made.take(outcome(T0 + number * 100_000, outcome=outcomes, **names, **changes), T0)
            number += 1
        segment = made.close("p", T0)
        assert decode(encode(segment)) == segment


def test_a_run_is_no_list_of_numbers_alone() -> None:
    assert isinstance(runs(GOOD)[0].starts, array)
