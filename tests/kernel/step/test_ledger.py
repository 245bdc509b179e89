"""The ledger by itself: how one turn decides its messages."""

import pytest

from chronolet.kernel.decider import EffectFailed
from chronolet.kernel.kind import Kind
from chronolet.kernel.step.ledger import SUBJECTS_KEPT, Input, Ledger, SilentMessage
from chronolet.kernel.step.snapshots import decode_states
from chronolet.kernel.storage.redis.replies import NEVER_OWNED
from chronolet.kernel.storage.store import Committed
from chronolet_schemas import kernel
from chronolet_schemas.envelope import START, Message, Position
from chronolet_schemas.keys import Shard
from tests.kernel import chore, mirror, tally
from tests.kernel.chore import Chore, Tell, Word

SHARD = Shard("chore")


def ledger(kind: Kind[Chore] | None = None) -> Ledger[Chore]:
    return Ledger(kind or chore.kind(), SHARD, "7:p", NEVER_OWNED, 1)


def told(number: int, **fields: object) -> Input:
    tell = Tell(request=f"r{number}", key="a", **fields)  # type: ignore[arg-type]
    return Input("mailbox", Position(number, 0), ("a",), tell, tell.request, "chore.Tell@1", "chore/a", b"data")


def signal(key: str, message: Message) -> Input:
    return Input("signal", START, (key,), message, "1-1", "chore.Word")


def added(number: int) -> Input:
    event = tally.Added(key="a", number=number, count=1, checksum=1)
    return Input("log", Position(1, number), ("a",), event, f"1-{number}", "tally.Added@1")


def test_messages_of_one_turn_see_each_other() -> None:
    books = ledger()
    turn = books.begin()
    books.decide(turn, told(1, wish="w"), 0)
    books.decide(turn, signal("a", chore.Answer(intent="w")), 0)
    books.decide(turn, signal("a", chore.Answer(intent="w")), 0)
    assert [type(event) for event in turn.events] == [chore.Told, chore.Answered]
    assert books.states == {}, "states change only with the commit"
    books.committed(turn, Committed(1, Position(9, 12)))
    assert books.states == {"a": Chore(told=1)}
    assert books.positions == {"a": {"": Position(9, 12)}}
    assert [record.actor for record in turn.records] == ["chore#7", "chore#7"]
    assert [record.cause for record in turn.records] == ["r1", "1-1"]


def test_an_unknown_entity_is_created_only_by_commands_and_by_kind_creates() -> None:
    books = ledger()
    turn = books.begin()
    books.decide(turn, signal("nobody", Word(word="x")), 0)
    assert not turn.records
    books.decide(turn, told(1), 0)
    books.decide(turn, signal("a", Word(word="x")), 0)
    assert [type(event) for event in turn.events] == [chore.Told, chore.Heard]

    creating: Ledger[mirror.Mirror] = Ledger(mirror.kind(1), Shard("mirror"), "1:p", NEVER_OWNED, 1)
    other = creating.begin()
    creating.decide(other, added(1), 0)
    assert list(other.states) == ["a"]


def test_a_refusal_yields_an_event_and_leaves_no_entity() -> None:
    books = ledger()
    turn = books.begin()
    books.decide(turn, told(1, refuse=True), 0)
    assert [type(event) for event in turn.events] == [chore.Refused]
    books.committed(turn, Committed(1, Position(9, 5)))
    assert books.states == {}
    assert books.positions == {}
    assert books.cause_for("a", "") == ""


def test_an_entity_that_ends_is_gone_and_may_begin_again() -> None:
    books = ledger()
    turn = books.begin()
    books.decide(turn, told(1, wish="w"), 0)
    books.decide(turn, told(2, ends=True), 0)
    books.decide(turn, told(3), 0)
    books.committed(turn, Committed(1, Position(9, 9)))
    assert books.states == {"a": Chore(told=1)}
    gone = books.begin()
    books.decide(gone, told(4, ends=True), 0)
    books.committed(gone, Committed(2, Position(9, 11)))
    assert books.states == {}
    assert books.positions == {}


def test_an_entity_that_ends_and_begins_again_in_one_step_starts_empty_as_in_replay() -> None:
    books, replayed = ledger(), ledger()
    failure = EffectFailed(effect="OneShot", subject="wish", intent="w", error="e")
    turn = books.begin()
    books.decide(turn, told(1, wish="w"), 0)
    books.decide(turn, signal("a", failure), 0)
    books.committed(turn, Committed(1, Position(9, 2)))
    again = books.begin()
    books.decide(again, told(2, ends=True), 0)
    books.decide(again, told(3), 0)
    books.committed(again, Committed(2, Position(9, 5)))
    for number, event in enumerate((*turn.events, *again.events), start=1):
        replayed.replay("a", event, event.subject(), Position(9, number))
    assert books.positions == replayed.positions == {"a": {"": Position(9, 5)}}


def test_the_positions_of_the_newest_subjects_are_kept() -> None:
    """A container that keeps dying has one subject per attempt."""
    books = ledger()
    for number in range(1, 3 * SUBJECTS_KEPT):
        books.replay("a", chore.Told(), f"dead/{number}", Position(9, number))
        books.replay("a", chore.Told(), "steady", Position(8, number))
    assert len(books.positions["a"]) == SUBJECTS_KEPT
    assert books.cause_for("a", f"dead/{number}") == f"9-{number}"
    assert books.cause_for("a", "steady") == books.cause_for("a", "dead/1") == f"8-{number}"
    restored = ledger()
    restored.restore(decode_states(Chore, books.snapshot()))
    assert list(restored.positions["a"].items()) == list(books.positions["a"].items())


def test_a_silent_command_is_an_error() -> None:
    books = ledger()
    with pytest.raises(SilentMessage, match=r"chore.Tell@1 r1: chore yielded no event"):
        books.decide(books.begin(), told(1, silent=True), 0)


def test_cursors_follow_decided_messages_and_never_go_back() -> None:
    books = ledger(chore.kind(subscribes={tally.Added: lambda event: (event.key,)}))
    passed = books.begin()
    books.decide(passed, added(5), 0)
    assert not passed.records
    books.passed(passed)
    assert books.log_cursor == START
    turn = books.begin()
    books.decide(turn, told(1), 0)
    assert turn.log_cursor == Position(1, 5), (
        "the next step consumes messages without events: they are never decided again"
    )
    assert turn.mail_cursor == Position(1, 0)
    books.committed(turn, Committed(1, Position(9, 9)))
    assert (books.log_cursor, books.mail_cursor) == (Position(1, 5), Position(1, 0))


def test_a_message_that_is_given_up_becomes_a_dead_letter_and_an_event() -> None:
    books = ledger()
    turn = books.begin()
    books.give_up(turn, told(1), 3, "why")
    (letter,) = turn.dead
    assert (letter.source, letter.at, letter.data, letter.error) == ("mailbox", "r1", b"data", "why")
    (event,) = turn.events
    assert event == kernel.MessageDeadLettered(message="chore.Tell@1", source="mailbox", at="r1", tries=3, error="why")
    assert turn.records[0].cause == "r1"
    assert turn.records[0].entity == "shard/chore"
    assert turn.mail_cursor == Position(1, 0)
    assert turn.forget == ["mailbox:1-0"]


def test_an_effect_is_caused_by_the_last_event_about_its_subject() -> None:
    books = ledger()
    turn = books.begin()
    books.decide(turn, told(1, wish="w"), 0)
    books.decide(turn, signal("a", Word(word="x")), 0)
    books.committed(turn, Committed(1, Position(9, 4)))
    assert books.cause_for("a", "") == "9-4"
    assert books.cause_for("a", "wish") == "9-4"
    failed = books.begin()
    failure = EffectFailed(effect="OneShot", subject="wish", intent="w", error="e")
    books.decide(failed, signal("a", failure), 0)
    books.committed(failed, Committed(2, Position(9, 5)))
    later = books.begin()
    books.decide(later, signal("a", Word(word="y")), 0)
    books.committed(later, Committed(3, Position(9, 6)))
    assert books.cause_for("a", "wish") == "9-5"
    assert books.cause_for("a", "") == "9-6"
