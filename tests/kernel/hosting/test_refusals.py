"""Kinds that a process must not host: it acquires none of their shards, and hands over those that it has."""

from collections.abc import Mapping

from chronolet.kernel.storage.store import owner_of
from chronolet_schemas.keys import Shard
from tests.kernel import chore, tally
from tests.kernel.chore import Assign
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch

LEASE = 6_000
"""Lease in milliseconds: long enough that no process loses a shard because a loaded machine stalled it."""
CHORE, TALLY = Shard("chore"), Shard("tally")


class Rule:
    """The rule that refuses kinds. A test changes `refused`; `asked` lists the runs for which the rule was called."""

    def __init__(self, **refused: str) -> None:
        self.refused: Mapping[str, str] = refused
        self.asked: list[str] = []

    def __call__(self, run: str) -> Mapping[str, str]:
        self.asked.append(run)
        return self.refused


def owner(rig: Rig, shard: Shard) -> str:
    return owner_of(rig.store.heads([shard])[shard].token)


def test_a_refused_kind_is_not_acquired_and_the_others_are(rig: Rig) -> None:
    rule = Rule(chore="elsewhere")
    process = rig.process(chore.kind(), tally.kind(1), refuses=rule)
    asked = len(rule.asked)
    scratch.wait_until(lambda: len(rule.asked) > asked + 3, "more looks for free shards")
    assert (owner(rig, CHORE), owner(rig, TALLY)) == ("", process.id)
    assert set(rule.asked) == {process.run}


def test_a_process_that_may_host_nothing_says_so_and_takes_over_once_it_may(rig: Rig) -> None:
    rule = Rule(chore="elsewhere")
    process = rig.process(chore.kind(), refuses=rule, begin=False)
    process.start()
    scratch.wait_until(lambda: process.phase == "refused", "the phase")
    assert owner(rig, CHORE) == ""
    rule.refused = {}
    scratch.wait_until(lambda: process.phase == "running", "the takeover")
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)


def test_a_standby_shows_a_refusal_and_stands_by_again_afterwards(rig: Rig) -> None:
    rig.process(chore.kind(), lease_milliseconds=LEASE)
    rule = Rule()
    second = rig.process(chore.kind(), refuses=rule, begin=False, lease_milliseconds=LEASE)
    second.start()
    scratch.wait_until(lambda: second.phase == "standing by", "the standby")
    rule.refused = {"chore": "elsewhere"}
    scratch.wait_until(lambda: second.phase == "refused", "the refusal")
    rule.refused = {}
    scratch.wait_until(lambda: second.phase == "standing by", "the standby again")


def test_shards_of_a_kind_that_becomes_refused_move_to_another_process(rig: Rig) -> None:
    rule = Rule()
    first = rig.process(chore.kind(), tally.kind(1), refuses=rule, lease_milliseconds=LEASE)
    rig.send(Assign(request=request(), key="a", standing="s"))
    rig.wait(chore.Assigned)
    second = rig.process(chore.kind(), begin=False, lease_milliseconds=LEASE)
    second.start()
    scratch.wait_until(lambda: second.phase == "standing by", "the second process")
    rule.refused = {"chore": "elsewhere"}
    scratch.wait_until(lambda: owner(rig, CHORE) == second.id, "the move")
    assert owner(rig, TALLY) == first.id
    scratch.wait_until(lambda: (first.phase, second.phase) == ("running", "running"), "both processes")
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned, 2)


def test_shards_are_handed_over_after_an_outage_of_the_server(rig: Rig) -> None:
    rule, line = Rule(), Line()
    first = rig.process(chore.kind(), refuses=rule, line=line, lease_milliseconds=LEASE)
    line.blocked = {"retire"}
    rule.refused = {"chore": "elsewhere"}
    scratch.wait_until(lambda: line.calls.count("retire") > 1, "repeated attempts")
    assert owner(rig, CHORE) == first.id
    line.blocked = set()
    scratch.wait_until(lambda: owner(rig, CHORE) == "", "the release")


def test_a_process_that_may_not_host_a_kind_adopts_nothing(rig: Rig) -> None:
    adopted: list[str] = []

    def adopt(_router: object, run: str, _lost: object) -> str:
        adopted.append(run)
        return ""

    rule = Rule(chore="elsewhere")
    process = rig.process(chore.kind(), tally.kind(1), refuses=rule, adopt=adopt)
    assert adopted == []
    rule.refused = {}
    scratch.wait_until(lambda: owner(rig, CHORE) == process.id, "the takeover")
    assert adopted == [process.run]
