"""Messages that make a decider fail are sent to the dead letters after three attempts; later messages are decided."""

import dataclasses
import threading
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from chronolet.kernel.decider import Effect, EffectFailed
from chronolet.kernel.kind import EffectContext
from chronolet.kernel.timing import Timing
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Event, Signal
from chronolet_schemas.keys import Shard
from tests.kernel import chore, mirror, tally
from tests.kernel.chore import Assign
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch

CHORE = Shard("chore")
QUICK = Timing(host_first_back_off_seconds=0.01, host_steady_seconds=3600.0)


@pytest.fixture(autouse=True)
def short_back_off(rig: Rig) -> None:
    """Make failed hosts restart soon, and count all their failures as consecutive."""
    rig.timing = QUICK


def test_a_poison_command_goes_to_the_dead_letters_after_three_attempts(rig: Rig) -> None:
    rig.process(chore.kind())
    first = rig.send(Assign(request=request(), key="a"))
    poison = rig.send(Assign(request=request(), key="a", raises=True))
    behind = [rig.send(Assign(request=request(), key="b")) for _ in range(5)]
    rig.wait(chore.Assigned, 6)
    (given_up,) = rig.wait(kernel.MessageDeadLettered)
    assert (given_up.source, given_up.at, given_up.tries) == ("mailbox", poison, 3)
    assert [entry.cause for entry in rig.log() if entry.type == "chore.Assigned@1"] == [first, *behind]
    (letter,) = rig.server.dead
    assert (letter.source, letter.at, letter.type) == ("mailbox", poison, "chore.Assign@1")
    restarts = rig.events(kernel.HostRestarted)
    assert [each.restarts for each in restarts] == [1, 2, 3, 4]
    assert all("poisoned command" in each.error for each in restarts)
    assert not rig.server.shard(CHORE).head.attempts
    causes = {entry.cause for entry in rig.log()}
    assert poison in causes, "its sender waits for a reply"


def test_a_command_that_yields_no_event_goes_to_the_dead_letters(rig: Rig) -> None:
    rig.process(chore.kind())
    silent = rig.send(Assign(request=request(), key="a", silent=True))
    (given_up,) = rig.wait(kernel.MessageDeadLettered)
    assert given_up.at == silent
    assert "SilentMessage" in rig.events(kernel.HostRestarted)[0].error


@pytest.mark.parametrize(("due", "error"), [(chore.SILENT_DUE, "SilentMessage"), (chore.SILENT_DUE + 1, "StillDue")])
def test_a_due_that_stays_due_goes_to_the_dead_letters(rig: Rig, due: int, error: str) -> None:
    rig.process(chore.kind())
    rig.send(Assign(request=request(), key="a", due=due))
    (given_up,) = rig.wait(kernel.MessageDeadLettered)
    assert (given_up.source, given_up.message) == ("signal", "chore.Due")
    assert error in rig.events(kernel.HostRestarted)[0].error
    rig.send(Assign(request=request(), key="b"))
    rig.wait(chore.Assigned, 2)


def test_a_due_that_was_given_up_is_retried_later(rig: Rig) -> None:
    rig.timing = replace(QUICK, due_retry_seconds=0.05, host_longest_back_off_seconds=0.02)
    rig.process(chore.kind())
    rig.send(Assign(request=request(), key="a", due=chore.SILENT_DUE))
    again = rig.wait(kernel.MessageDeadLettered, 2)
    assert {(each.message, each.tries) for each in again} == {("chore.Due", 3)}
    rig.send(Assign(request=request(), key="a", due=chore.SILENT_DUE + 5))
    assert rig.wait(chore.Fired)[0].at == chore.SILENT_DUE + 5, "the entity has one timer, with the new time"


def test_a_poison_signal_goes_to_the_dead_letters(rig: Rig) -> None:
    rig.timing = replace(QUICK, effect_first_pause_seconds=0.01)

    def run(_effect: Effect, context: EffectContext) -> Signal | None:
        context.send(chore.Report(text="poison"))
        context.cancelled.wait()
        return None

    rig.process(chore.kind(standing=run))
    rig.send(Assign(request=request(), key="a", standing="s"))
    (given_up,) = rig.wait(kernel.MessageDeadLettered)
    assert (given_up.source, given_up.message) == ("signal", "chore.Report")
    rig.send(Assign(request=request(), key="b"))
    rig.wait(chore.Assigned, 2)


def test_a_result_that_was_given_up_counts_as_the_effects_failure(rig: Rig) -> None:
    """Otherwise the effect would stay outstanding, and its result would make the host fail repeatedly."""
    runs: list[str] = []

    def run(effect: Effect, _context: EffectContext) -> Signal:
        runs.append(effect.intent)
        return chore.Report(text="poison")

    rig.process(chore.kind(run))
    sent = rig.send(Assign(request=request(), key="a", one_shot="w"))
    (failed,) = rig.wait(chore.Failed)
    assert (failed.intent, failed.error) == ("w", "the effect's result could not be decided, see the dead letters")
    (given_up,) = rig.events(kernel.MessageDeadLettered)
    assert (given_up.source, given_up.message, given_up.tries) == ("signal", "chore.Report", 3)
    assert len(runs) == 5, "once, once per attempt, and once to be given up"
    assigned, letter, end = (
        next(entry for entry in rig.log() if entry.type == name)
        for name in ("chore.Assigned@1", "kernel.MessageDeadLettered@1", "chore.Failed@1")
    )
    assert (assigned.cause, letter.cause, end.cause) == (sent, str(assigned.position), str(assigned.position))


def test_an_effect_is_retried_after_a_pause_if_neither_its_result_nor_its_failure_can_be_decided(rig: Rig) -> None:
    rig.timing = replace(QUICK, given_up_pause_seconds=0.05, host_longest_back_off_seconds=0.02)
    healed = threading.Event()

    def run(effect: Effect, _context: EffectContext) -> Signal:
        return chore.Result(intent=effect.intent) if healed.is_set() else chore.Report(text="poison")

    def decide(state: chore.Chore, message: object, now: int) -> Sequence[Event]:
        if isinstance(message, EffectFailed):
            raise TypeError("poisoned failure")
        return chore.decide(state, message, now)

    decider = dataclasses.replace(chore.DECIDER, decide=decide)
    rig.process(dataclasses.replace(chore.kind(run), decider=decider))
    rig.send(Assign(request=request(), key="a", one_shot="w"))
    scratch.wait_until(
        lambda: "chore.EffectFailed" in [one.message for one in rig.events(kernel.MessageDeadLettered)], "both given up"
    )
    healed.set()
    assert rig.wait(chore.Completed)[0].intent == "w"


def test_lost_replies_do_not_count_as_attempts(rig: Rig) -> None:
    """Only a message's own failures count as attempts. Here another message fails, and replies from the store are
    lost.
    """
    line = Line()
    line.loses_replies = {"count_attempts", "step", "acquire"}
    rig.process(chore.kind(), line=line)
    rig.send(Assign(request=request(), key="a", raises=True))
    for _ in range(5):
        rig.send(Assign(request=request(), key="b"))
    rig.wait(kernel.MessageDeadLettered)
    rig.wait(chore.Assigned, 5)
    assert len(rig.events(kernel.MessageDeadLettered)) == 1


def test_undecodable_messages_are_quarantined_with_an_event(rig: Rig) -> None:
    rig.process(chore.kind())
    assert rig.store.send(CHORE, "chore.Assign@1", "chore/a", "r1", b"\xc1") == "sent"
    assert rig.store.send(CHORE, "chore.Unknown@1", "chore/a", "r2", b"\x80") == "sent"
    assert rig.store.send(CHORE, "chore.Assigned@1", "chore/a", "r3", b"\x80") == "sent"
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    quarantined = rig.events(kernel.EntryQuarantined)
    assert [(each.source, each.at) for each in quarantined] == [("mailbox", r) for r in ("r1", "r2", "r3")]
    assert [letter.at for letter in rig.server.dead] == ["r1", "r2", "r3"]
    assert not rig.events(kernel.HostRestarted)


def test_the_restart_is_recorded_although_the_first_message_after_it_fails(rig: Rig) -> None:
    """A log entry is in the backlog from the start, whereas the reader brings commands later."""

    def decide(state: mirror.Mirror, message: object, now: int) -> Sequence[Event]:
        if isinstance(message, tally.Added) and message.number == 13:
            raise ValueError("poisoned entry")
        return mirror.decide(state, message, now)

    decider = dataclasses.replace(mirror.DECIDER, decide=decide)
    rig.process(tally.kind(1), dataclasses.replace(mirror.kind(1), decider=decider))
    for number in (12, 13, 14):
        rig.send(tally.Add(request=str(number), key="a", number=number), "tally")
    (given_up,) = rig.wait(kernel.MessageDeadLettered)
    assert (given_up.source, given_up.tries) == ("log", 3)
    assert [seen.number for seen in rig.wait(mirror.Seen, 2)] == [12, 14]
    assert [each.restarts for each in rig.events(kernel.HostRestarted)] == [1, 2, 3, 4]


def test_the_count_of_a_signal_that_does_not_come_again_is_removed(rig: Rig) -> None:
    rig.timing = replace(QUICK, careful_messages=3)
    poison = ["poison", "poison"]

    def run(_effect: Effect, context: EffectContext) -> Signal | None:
        for text in poison[:1]:
            poison.remove(text)
            context.send(chore.Report(text=text))
        context.cancelled.wait()
        return None

    rig.process(chore.kind(standing=run))
    rig.send(Assign(request=request(), key="a", standing="s"))
    rig.wait(kernel.HostRestarted, 2)
    assert list(rig.server.shard(CHORE).head.attempts.values()) == [1]
    for _ in range(4):
        rig.send(Assign(request=request(), key="b"))
    rig.wait(chore.Assigned, 5)
    assert not rig.server.shard(CHORE).head.attempts
    assert not rig.events(kernel.MessageDeadLettered)


def test_a_poison_signal_among_good_ones_of_its_type_is_given_up(rig: Rig) -> None:
    def run(_effect: Effect, context: EffectContext) -> Signal | None:
        context.send(chore.Report(text="fine"))
        context.send(chore.Report(text="poison"))
        context.cancelled.wait()
        return None

    rig.process(chore.kind(standing=run))
    rig.send(Assign(request=request(), key="a", standing="s"))
    (given_up,) = rig.wait(kernel.MessageDeadLettered)
    assert (given_up.message, given_up.tries) == ("chore.Report", 3)
    assert {one.text for one in rig.events(chore.Reported)} == {"fine"}
    assert len(rig.events(kernel.HostRestarted)) == 4
