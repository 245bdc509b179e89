"""Conversion of notices and inspects to observations."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from chronolet.pleg.containers.observations import NOBODY, Sent, inspected, noticed
from chronolet.pleg.signals import ContainerObserved, OomKilled
from chronolet.ports.runtime.labels import Owner
from chronolet.ports.runtime.runtime import ContainerState, Notice

T0 = 1_700_000_000_000
REF: dict[str, Any] = {"pod": "default/web", "uid": "u1", "container": "app", "attempt": 2, "id": "a0"}
OWNER = Owner(pod="default/web", uid="u1", container="app", attempt=2)


@pytest.mark.parametrize(
    ("action", "signal"),
    [
        ("create", None),
        ("kill", None),
        ("start", ContainerObserved(state="running", started_at=T0, detailed=False, **REF)),
        ("oom", OomKilled(**REF)),
        ("die", ContainerObserved(state="exited", exit_code=3, finished_at=T0, **REF)),
        ("destroy", ContainerObserved(state="removed", **REF)),
    ],
)
def test_a_notice_becomes_an_observation(
    action: Literal["create", "start", "kill", "die", "destroy", "oom"], signal: ContainerObserved | OomKilled | None
) -> None:
    assert noticed(Notice(action=action, id="a0", labels={}, at=T0, exit_code=3), OWNER) == signal


def test_a_death_has_the_signals_that_were_sent_before_it() -> None:
    died = noticed(Notice(action="die", id="a0", labels={}, at=T0, exit_code=137), OWNER, Sent((15, 9), T0))
    assert isinstance(died, ContainerObserved)
    assert (died.sent, died.sent_at) == ((15, 9), T0)


def test_a_death_whose_exit_code_is_hidden_is_left_to_the_listing() -> None:
    assert noticed(Notice(action="die", id="a0", labels={}, at=T0, exit_code=None), OWNER) is None


def shown(**fields: Any) -> ContainerObserved:
    """Return the observation of a container that an inspect shows with these fields."""
    return inspected("a0", ContainerState(id="a0", name="n", labels={}, **fields), OWNER)


def test_a_running_container_has_a_start_and_no_end() -> None:
    running = shown(state="running", started_at=T0, finished_at=T0 - 9, exit_code=3, oom_killed=True)
    assert running == ContainerObserved(state="running", started_at=T0, **REF)


@pytest.mark.parametrize(
    ("exit_code", "oom_killed", "reason"), [(0, False, "Completed"), (3, False, "Error"), (137, True, "OOMKilled")]
)
def test_a_dead_container_has_a_reason(*, exit_code: int, oom_killed: bool, reason: str) -> None:
    times = {"started_at": T0, "finished_at": T0 + 9}
    dead = shown(state="exited", exit_code=exit_code, oom_killed=oom_killed, **times)
    assert dead == ContainerObserved(state="exited", exit_code=exit_code, reason=reason, **times, **REF)


def test_a_container_that_the_runtime_does_not_know_is_removed() -> None:
    assert inspected("a0", None, OWNER) == ContainerObserved(state="removed", **REF)
    unknown = ContainerObserved(state="removed", pod="", uid="", container="", attempt=0, id="a0")
    assert inspected("a0", None, NOBODY) == unknown
