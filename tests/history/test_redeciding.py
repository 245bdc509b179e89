"""Deciding again reproduces what a log records, and names what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pytest

from chronolet.history.redeciding import Finding, Redeciding, Summary
from chronolet.kernel.decider import Decider
from chronolet.kernel.kind import Kind
from chronolet_schemas import codec, data_fields, kernel, registry
from chronolet_schemas.envelope import Entry, Event, Position
from tests.kernel import chore, mirror, tally
from tests.kernel.chore import Assign
from tests.kernel.rig import Rig, request
from tests.support import scratch


@pytest.fixture
def log(rig: Rig) -> list[Entry]:
    """The log of one shard that had two owners: commands, results of effects, and a timer."""
    for number in (1, 2):
        process = rig.process(chore.kind())
        rig.send(Assign(request=request(), key="a", one_shot=f"w{number}", due=1))
        scratch.wait_until(lambda number=number: len(rig.events(chore.Completed)) == number, "the result")
        scratch.wait_until(lambda number=number: len(rig.events(chore.Fired)) == number, "the timer")
        process.retire()
    return list(rig.log())


def compared(log: Iterable[Entry], *kinds: Kind[Any]) -> tuple[list[Finding], Summary]:
    redeciding = Redeciding(kinds)
    findings = [finding for entry in log for finding in redeciding.add(entry)]
    return [*findings, *redeciding.end()], redeciding.summary()


def changed(**functions: Any) -> Kind[Any]:
    kind = chore.kind()
    fields = {name: getattr(kind.decider, name) for name in ("initial", "decide", "evolve", "due", "outstanding")}
    return chore.kind(decider=Decider(**fields | functions))


def decided(log: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in log if entry.entity == "chore/a"]


def test_all_decisions_of_both_owners_are_reproduced(log: list[Entry]) -> None:
    findings, summary = compared(log, chore.kind())
    own = decided(log)
    assert findings == []
    assert summary == Summary(own[0].position, decisions=6, events=6, skipped=0)


def test_a_changed_decider_is_detected_and_the_event_is_named(log: list[Entry]) -> None:
    def shouting(state: Any, message: object, now: int) -> Sequence[Event]:
        events = chore.decide(state, message, now)
        return [msgspec.structs.replace(one, text="!") if isinstance(one, chore.Completed) else one for one in events]

    findings, _ = compared(log, changed(decide=shouting))
    assert [finding.position for finding in findings] == [
        entry.position for entry in log if entry.type == registry.type_of(chore.Completed)
    ]
    assert findings[0].reason == "Result leads to chore.Completed with other values: text is now '!', the log has ''"
    assert findings[0].entity == "chore/a"


@pytest.mark.parametrize(
    ("decide", "reason"),
    [
        (lambda *_: (), "Assign no longer leads to chore.Assigned{"),
        (lambda *given: (*chore.decide(*given), chore.Refused()), "now leads to one more event, chore.Refused{}"),
        (lambda *_: (chore.Refused(),), "Assign now leads to chore.Refused{}, the log has chore.Assigned{"),
        (lambda *_: 1 / 0, "makes the decider fail: ZeroDivisionError: division by zero"),
    ],
)
def test_each_kind_of_difference_is_described(log: list[Entry], decide: Any, reason: str) -> None:
    findings, _ = compared(log, changed(decide=decide))
    assert {finding.kind for finding in findings} == {"different"}
    assert any(reason in finding.reason for finding in findings), findings


@pytest.mark.parametrize(
    ("is_redacted", "kind"),
    [
        (lambda text: "w1" in text, "redacted"),
        (lambda text: "w2" in text, "different"),
    ],
    ids=["in the message", "in another decision"],
)
@pytest.mark.parametrize("decide", [lambda *_: (), lambda *_: 1 / 0], ids=["other events", "no decision"])
def test_a_difference_where_something_was_taken_out_is_named_so(
    log: list[Entry], decide: Any, is_redacted: Callable[[str], bool], kind: str
) -> None:
    """It cannot be seen whether it follows from what was taken out."""
    redeciding = Redeciding((changed(decide=decide),), is_redacted=is_redacted)
    first = next(finding for entry in log for finding in redeciding.add(entry))
    assert (first.kind, first.position) == (kind, decided(log)[0].position)


def test_a_decision_that_is_reproduced_is_no_finding_though_something_was_taken_out(log: list[Entry]) -> None:
    redeciding = Redeciding((chore.kind(),), is_redacted=lambda _: True)
    findings = [finding for entry in log for finding in redeciding.add(entry)]
    assert [*findings, *redeciding.end()] == []
    assert redeciding.summary().decisions > 0


def test_an_event_that_does_not_follow_is_detected(log: list[Entry]) -> None:
    at = next(n for n, entry in enumerate(log) if entry.type == registry.type_of(chore.Fired))
    value = data_fields.parts(log[at].data).value
    log[at] = log[at]._replace(data=data_fields.with_input(codec.encode(chore.Fired(at=2)), value))
    findings, _ = compared(log, chore.kind())
    assert [finding.position for finding in findings] == [log[at].position]


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x90", b"\x81\xa7assigned\xa1x"])
def test_a_damaged_entry_is_named_and_the_rest_is_compared(log: list[Entry], data: bytes) -> None:
    at = next(n for n, entry in enumerate(log) if entry.type == registry.type_of(chore.Completed))
    damaged = [*log[:at], log[at]._replace(data=data), *log[at + 1 :]]
    findings, summary = compared(damaged, chore.kind())
    assert [(finding.kind, finding.position) for finding in findings] == [("damaged", log[at].position)]
    assert summary.decisions == 5


def test_a_history_without_records_is_skipped_until_they_begin(log: list[Entry]) -> None:
    second = next(entry.actor for entry in reversed(log) if entry.entity == "chore/a")
    old = [
        entry if entry.actor == second else entry._replace(data=data_fields.parts(entry.data).plain) for entry in log
    ]
    findings, summary = compared(old, chore.kind())
    assert findings == []
    assert summary == Summary(
        next(entry.position for entry in decided(log) if entry.actor == second), decisions=3, events=3, skipped=3
    )


def additions(rig: Rig, count: int) -> list[Entry]:
    """The log of a kind that counts, and of one that follows it."""
    rig.process(tally.kind(1), mirror.kind(1))
    for number in range(count):
        rig.send(tally.Add(request=request(), key="a", number=number), "tally")
    scratch.wait_until(lambda: len(rig.events(mirror.Seen)) == count, "the additions")
    return list(rig.log())


def test_a_range_needs_what_came_before_it_only_to_read(rig: Rig) -> None:
    log = additions(rig, 9)
    middle = next(entry.position for entry in log if entry.type == registry.type_of(mirror.Seen))
    redeciding = Redeciding((tally.kind(1), mirror.kind(1)), after=middle)
    findings = [finding for entry in log for finding in redeciding.add(entry)]
    assert [*findings, *redeciding.end()] == []
    later = [entry for entry in log if entry.position > middle and entry.entity.endswith("/a")]
    assert redeciding.summary() == Summary(later[0].position, decisions=len(later), events=len(later), skipped=0)


def test_decisions_about_what_was_not_read_are_skipped(rig: Rig) -> None:
    log = additions(rig, 3)
    seen = [entry for entry in log if entry.type == registry.type_of(mirror.Seen)]
    redeciding = Redeciding((mirror.kind(1),))
    assert [finding for entry in seen for finding in redeciding.add(entry)] == []
    assert list(redeciding.end()) == []
    assert redeciding.summary() == Summary(None, decisions=0, events=0, skipped=3)


def test_a_decision_whose_last_events_are_cut_off_is_not_different(rig: Rig) -> None:
    rig.process(chore.kind())
    rig.send(Assign(request=request(), key="a", ends=True))
    rig.wait(chore.Ended)
    cut = list(rig.log())[:-1]
    assert compared(cut, chore.kind())[0][0].reason.startswith("Assign now leads to one more event")
    redeciding = Redeciding((chore.kind(),))
    assert [finding for entry in cut for finding in redeciding.add(entry)] == []
    assert list(redeciding.end(whole=False)) == []
    assert redeciding.summary().decisions == 1


def test_each_process_is_compared_as_it_decides(log: list[Entry]) -> None:
    """The log of the fixture does not describe its processes; here, one of them decides otherwise."""
    second = next(value["by"] for value in map(value_of, reversed(decided(log))) if isinstance(value, dict))
    started = kernel.ProcessStarted(process=second, kinds=["chore"], settings={}, settings_digest="d")
    described = Entry(
        Position(1, 1), registry.type_of(kernel.ProcessStarted), "node/n", "", "process/x", "", codec.encode(started)
    )
    redeciding = Redeciding((chore.kind(),), lambda _: (changed(decide=lambda *_: ()),))
    findings = [finding for entry in (described, *log) for finding in redeciding.add(entry)]
    findings += redeciding.end()
    mine = {entry.actor for entry in decided(log) if entry.actor != decided(log)[0].actor}
    assert len(findings) == 3
    assert {finding.actor for finding in findings} == mine


def value_of(entry: Entry) -> Any:
    return data_fields.parts(entry.data).value
