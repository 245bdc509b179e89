"""The ledger: how one turn decides its messages."""

import pytest

from chronolet.kernel.decider import EffectFailed
from chronolet.kernel.kind import Kind
from chronolet.kernel.step.input import Input
from chronolet.kernel.step.ledger import SUBJECTS_KEPT, Ledger, SilentMessage
from chronolet.kernel.step.snapshots import decode_states
from chronolet.kernel.storage.redis.replies import NEVER_OWNED
from chronolet.kernel.storage.store import Committed
from chronolet_schemas import kernel
from chronolet_schemas.envelope import START, Message, Position
from chronolet_schemas.keys import Shard
from tests.kernel import chore, mirror, tally
from tests.kernel.chore import Assign, Chore, Report

SHARD = Shard("chore")


def ledger(kind: Kind[Chore] | None = None) -> Ledger[Chore]:
    return Ledger(kind or chore.kind(), SHARD, "7:p", NEVER_OWNED, 1)


def assignment(number: int, **fields: object) -> Input:
    command = Assign(request=f"r{number}", key="a", **fields)  # type: ignore[arg-type]
    return Input("mailbox", Position(number, 0), ("a",), command, command.request, "chore.Assign@1", "chore/a", b"data")


def signal(key: str, message: Message) -> Input:
    return Input("signal", START, (key,), message, "1-1", "chore.Report")


def added(number: int) -> Input:
    event = tally.Added(key="a", number=number, count=1, checksum=1)
    return Input("log", Position(1, number), ("a",), event, f"1-{number}", "tally.Added@1")


def test_each_message_of_a_turn_finds_the_state_that_earlier_ones_left() -> None:
    shard = ledger()
    turn = shard.begin()
    shard.decide(turn, assignment(1, one_shot="w"), 0)
    shard.decide(turn, signal("a", chore.Result(intent="w")), 0)
    shard.decide(turn, signal("a", chore.Result(intent="w")), 0)
    assert [type(event) for event in turn.events] == [chore.Assigned, chore.Completed]
    assert shard.states == {}, "states change only with the commit"
    shard.committed(turn, Committed(1, Position(9, 12)))
    assert shard.states == {"a": Chore(assigned=1)}
    assert shard.positions == {"a": {"": Position(9, 12)}}
    assert [record.actor for record in turn.records] == ["chore#7", "chore#7"]
    assert [record.cause for record in turn.records] == ["r1", "1-1"]


def test_an_unknown_entity_is_created_only_by_commands_and_by_kind_creates() -> None:
    shard = ledger()
    turn = shard.begin()
    shard.decide(turn, signal("unknown", Report(text="x")), 0)
    assert not turn.records
    shard.decide(turn, assignment(1), 0)
    shard.decide(turn, signal("a", Report(text="x")), 0)
    assert [type(event) for event in turn.events] == [chore.Assigned, chore.Reported]

    creating: Ledger[mirror.Mirror] = Ledger(mirror.kind(1), Shard("mirror"), "1:p", NEVER_OWNED, 1)
    other = creating.begin()
    creating.decide(other, added(1), 0)
    assert list(other.states) == ["a"]


def test_a_refused_command_yields_an_event_and_creates_no_entity() -> None:
    shard = ledger()
    turn = shard.begin()
    shard.decide(turn, assignment(1, refuse=True), 0)
    assert [type(event) for event in turn.events] == [chore.Refused]
    shard.committed(turn, Committed(1, Position(9, 5)))
    assert shard.states == {}
    assert shard.positions == {}
    assert shard.cause_for("a", "") == ""


def test_an_ended_entity_is_removed_and_may_begin_again() -> None:
    shard = ledger()
    turn = shard.begin()
    shard.decide(turn, assignment(1, one_shot="w"), 0)
    shard.decide(turn, assignment(2, ends=True), 0)
    shard.decide(turn, assignment(3), 0)
    shard.committed(turn, Committed(1, Position(9, 9)))
    assert shard.states == {"a": Chore(assigned=1)}
    ended = shard.begin()
    shard.decide(ended, assignment(4, ends=True), 0)
    shard.committed(ended, Committed(2, Position(9, 11)))
    assert shard.states == {}
    assert shard.positions == {}


def test_an_entity_that_ends_and_begins_again_in_one_step_starts_empty_as_in_a_replay() -> None:
    shard, replayed = ledger(), ledger()
    failure = EffectFailed(effect="OneShot", subject="one-shot", intent="w", error="e")
    turn = shard.begin()
    shard.decide(turn, assignment(1, one_shot="w"), 0)
    shard.decide(turn, signal("a", failure), 0)
    shard.committed(turn, Committed(1, Position(9, 2)))
    again = shard.begin()
    shard.decide(again, assignment(2, ends=True), 0)
    shard.decide(again, assignment(3), 0)
    shard.committed(again, Committed(2, Position(9, 5)))
    for number, event in enumerate((*turn.events, *again.events), start=1):
        replayed.replay("a", event, event.subject(), Position(9, number))
    assert shard.positions == replayed.positions == {"a": {"": Position(9, 5)}}


def test_the_positions_of_the_newest_subjects_are_kept() -> None:
    """A container that keeps dying has one subject per attempt."""
    shard = ledger()
    for number in range(1, 3 * SUBJECTS_KEPT):
        shard.replay("a", chore.Assigned(), f"dead/{number}", Position(9, number))
        shard.replay("a", chore.Assigned(), "steady", Position(8, number))
    assert len(shard.positions["a"]) == SUBJECTS_KEPT
    assert shard.cause_for("a", f"dead/{number}") == f"9-{number}"
    assert shard.cause_for("a", "steady") == shard.cause_for("a", "dead/1") == f"8-{number}"
    restored = ledger()
    restored.restore(decode_states(Chore, shard.snapshot()))
    assert list(restored.positions["a"].items()) == list(shard.positions["a"].items())


def test_a_command_without_an_event_is_an_error() -> None:
    shard = ledger()
    with pytest.raises(SilentMessage, match=r"chore.Assign@1 r1: chore yielded no event"):
        shard.decide(shard.begin(), assignment(1, silent=True), 0)


def test_cursors_follow_decided_messages_and_never_go_back() -> None:
    shard = ledger(chore.kind(subscribes={tally.Added: lambda event: (event.key,)}))
    passed = shard.begin()
    shard.decide(passed, added(5), 0)
    assert not passed.records
    shard.passed(passed)
    assert shard.log_cursor == START
    turn = shard.begin()
    shard.decide(turn, assignment(1), 0)
    assert turn.log_cursor == Position(1, 5), (
        "the next step consumes messages without events: they are never decided again"
    )
    assert turn.mail_cursor == Position(1, 0)
    shard.committed(turn, Committed(1, Position(9, 9)))
    assert (shard.log_cursor, shard.mail_cursor) == (Position(1, 5), Position(1, 0))


def test_a_message_that_is_given_up_becomes_a_dead_letter_and_an_event() -> None:
    shard = ledger()
    turn = shard.begin()
    shard.give_up(turn, assignment(1), 3, "why")
    (letter,) = turn.dead
    assert (letter.source, letter.at, letter.data, letter.error) == ("mailbox", "r1", b"data", "why")
    (event,) = turn.events
    assert event == kernel.MessageDeadLettered(
        message="chore.Assign@1", source="mailbox", at="r1", tries=3, error="why"
    )
    assert turn.records[0].cause == "r1"
    assert turn.records[0].entity == "shard/chore"
    assert turn.mail_cursor == Position(1, 0)
    assert turn.forget == ["mailbox:1-0"]


def test_an_effect_is_caused_by_the_last_event_about_its_subject() -> None:
    shard = ledger()
    turn = shard.begin()
    shard.decide(turn, assignment(1, one_shot="w"), 0)
    shard.decide(turn, signal("a", Report(text="x")), 0)
    shard.committed(turn, Committed(1, Position(9, 4)))
    assert shard.cause_for("a", "") == "9-4"
    assert shard.cause_for("a", "one-shot") == "9-4"
    failed = shard.begin()
    failure = EffectFailed(effect="OneShot", subject="one-shot", intent="w", error="e")
    shard.decide(failed, signal("a", failure), 0)
    shard.committed(failed, Committed(2, Position(9, 5)))
    later = shard.begin()
    shard.decide(later, signal("a", Report(text="y")), 0)
    shard.committed(later, Committed(3, Position(9, 6)))
    assert shard.cause_for("a", "one-shot") == "9-5"
    assert shard.cause_for("a", "") == "9-6"
