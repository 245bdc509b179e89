"""Which signals a death is explained with: those of its own run, and nobody's only if nothing can have been missed."""

from __future__ import annotations

from typing import Literal

import pytest

from chronolet.pleg.containers.observations import NOT_KNOWN, Sent
from chronolet.pleg.containers.sent import SentSignals
from chronolet.ports.runtime.runtime import Notice

T0 = 1_800_000_000_000


def notice(
    action: Literal["create", "start", "kill", "die", "destroy", "oom"], signal: int | None = 0, id_: str = "a0"
) -> Notice:
    return Notice(action=action, id=id_, labels={}, at=T0 + (signal or 0), signal=signal)


START, DIE = notice("start"), notice("die")


@pytest.mark.parametrize(
    ("what", "before", "sent"),
    [
        ("followed from the start", [START], Sent(())),
        ("the start was not noticed: the agent is newer", [], NOT_KNOWN),
        ("a signal after a start that was not noticed", [notice("kill", 9)], Sent((9,), T0 + 9)),
        ("stopped", [START, notice("kill", 15), notice("kill", 9)], Sent((15, 9), T0 + 9)),
        ("an OOM kill of a child", [START, notice("kill", 1), notice("oom")], Sent((1,), T0 + 1)),
        ("another container", [START, notice("kill", 9, "b0")], Sent(())),
        ("the run before", [START, notice("kill", 9), DIE, START], Sent(())),
        ("the newest eight", [START, *(notice("kill", n) for n in range(1, 11))], Sent(tuple(range(3, 11)), T0 + 10)),
    ],
)
def test_the_signals_of_a_death(what: str, before: list[Notice], sent: Sent) -> None:
    signals = SentSignals()
    for one in before:
        signals.until(one)
    assert signals.until(DIE) == sent, what
    assert signals.until(DIE) == NOT_KNOWN, "a run dies once"


def test_a_label_that_hides_the_numbers_makes_them_unknown() -> None:
    signals = SentSignals()
    for one in (notice("start", None), notice("kill", 9)):
        signals.until(one)
    assert signals.until(notice("die", None)) == NOT_KNOWN
