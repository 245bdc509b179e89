"""A timer that fires in the turn in which another message moved its due time is ignored."""

from __future__ import annotations

from chronolet.kernel.decider import Due
from chronolet.kernel.step.input import Input
from chronolet.kernel.step.ledger import Ledger
from chronolet.kernel.storage.store import Committed, Head
from chronolet_schemas.envelope import START, Message, Position
from chronolet_schemas.keys import Shard
from tests.kernel import tally

HEAD = Head(
    token="1:x",
    version=0,
    step_id="",
    at=START,
    log_cursor=START,
    mail_cursor=START,
    attempts={},
    schema=1,
    unowned_since=0,
)


def signal(message: Message) -> Input:
    return Input("signal", START, ("k",), message, "", type(message).__name__)


def add(number: int, rest_after: int = 0) -> tally.Add:
    return tally.Add(request=f"r{number}", key="k", number=number, rest_after=rest_after)


def test_a_due_whose_time_was_moved_in_the_same_turn_is_skipped() -> None:
    ledger = Ledger(tally.kind(1), Shard("tally"), "1:x", HEAD, 1)
    turn = ledger.begin()
    ledger.decide(turn, signal(add(1, rest_after=50)), 1000)
    ledger.committed(turn, Committed(1, Position(1000, len(turn.records))))
    assert tally.DECIDER.due(ledger.states["k"]) == 1050

    turn = ledger.begin()
    ledger.decide(turn, signal(add(2)), 1050)
    ledger.decide(turn, Input("due", START, ("k",), Due(at=1050), "", "tally.Due"), 1050)
    assert [type(event) for event in turn.events] == [tally.Added]


def test_a_due_whose_time_has_come_is_decided() -> None:
    ledger = Ledger(tally.kind(1), Shard("tally"), "1:x", HEAD, 1)
    turn = ledger.begin()
    ledger.decide(turn, signal(add(1, rest_after=50)), 1000)
    ledger.decide(turn, Input("due", START, ("k",), Due(at=1050), "", "tally.Due"), 1050)
    assert [type(event) for event in turn.events] == [tally.Added, tally.Rested]
