"""The agent's log lines about steps, effects and failed hosts carry the position of an entry in the node's log."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from chronolet.kernel.kind import Effect, EffectContext
from chronolet_schemas.envelope import Signal
from tests.kernel import chore
from tests.kernel.chore import Assign
from tests.kernel.rig import Rig, request
from tests.support import scratch

Lines = list[MutableMapping[str, Any]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as found:
        yield found


def named(lines: Lines, event: str) -> Lines:
    return [line for line in lines if line["event"] == event]


def test_lines_of_an_effect_have_the_position_of_the_event_that_requested_it(rig: Rig, lines: Lines) -> None:
    log = structlog.get_logger("test")

    def work(effect: Effect, context: EffectContext) -> Signal:
        log.info("at work", key=context.entity)
        return chore.Result(intent=effect.intent)

    rig.process(chore.kind(one_shot=work))
    for key in ("a", "b"):
        rig.send(Assign(request=request(), key=key, one_shot="1"))
    rig.wait(chore.Completed, 2)
    requested = {entry.entity: str(entry.position) for entry in rig.log() if entry.type == "chore.Assigned@1"}
    shown = {f"chore/{line['key']}": line["position"] for line in named(lines, "at work")}
    assert shown == requested
    assert len(shown) == 2


def test_a_committed_step_is_a_line_for_debugging(rig: Rig, lines: Lines) -> None:
    rig.process(chore.kind())
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    rig.settle()
    last = rig.log()[-1]
    scratch.wait_until(
        lambda: any(line["position"] == str(last.position) for line in named(lines, "step committed")), "the line"
    )
    assert {line["log_level"] for line in named(lines, "step committed")} == {"debug"}


def test_a_failed_host_names_the_position_of_its_last_step(rig: Rig, lines: Lines) -> None:
    rig.process(chore.kind(), lease_milliseconds=3000)
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    rig.settle()
    at = rig.log()[-1].position
    rig.send(Assign(request=request(), key="a", raises=True))
    scratch.wait_until(lambda: bool(named(lines, "host failed, restarting")), "the line")
    assert named(lines, "host failed, restarting")[0]["position"] == str(at)
