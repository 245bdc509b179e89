"""With which settings a process decided."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chronolet.history.deciding_processes import DecidingProcesses
from chronolet.kernel.kind import Kind
from chronolet.node.settings.plain import digest, plain_settings, read_settings
from chronolet.node.settings.policies import deciding
from chronolet.node.settings.settings import Settings
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import Entry, Event, Position

USUAL = Settings(node="n", root_dir=Path("/var/lib/chronolet"))


def entry(event: Event, actor: str) -> Entry:
    return Entry(Position(1, 1), registry.type_of(type(event)), "", "", actor, "", codec.encode(event))


def started(process: str, kinds: Sequence[str] = ("pleg",), **settings: Any) -> Entry:
    plain = plain_settings(Settings(node="n", root_dir=USUAL.root_dir, **settings))
    event = kernel.ProcessStarted(
        process=process, kinds=list(kinds), settings=plain, settings_digest=digest(plain), architecture="x86_64"
    )
    return entry(event, f"process/{process}")


def kinds_of(process: kernel.ProcessStarted) -> Sequence[Kind[Any]]:
    return deciding(read_settings(process.settings), process.architecture)


def kills_per_minute(kind: Kind[Any] | None) -> int:
    assert kind is not None
    policy = kind.decider.due.args[0]  # type: ignore[attr-defined]
    return int(policy.kills_per_minute)


def processes(*log: Entry) -> DecidingProcesses:
    found = DecidingProcesses(deciding(USUAL, "x86_64"), kinds_of)
    for one in log:
        found.add(one)
    return found


def test_each_process_decides_with_its_own_settings() -> None:
    found = processes(started("p", probe_kills_per_minute=1), started("q", probe_kills_per_minute=2))
    assert [kills_per_minute(found.kind(process, "pleg")) for process in ("p", "q")] == [1, 2]


def test_a_process_that_starts_again_with_other_settings_decides_with_these() -> None:
    found = processes(started("p", probe_kills_per_minute=1), started("p", probe_kills_per_minute=2))
    assert kills_per_minute(found.kind("p", "pleg")) == 2


@pytest.mark.parametrize("process", ["", "another"])
def test_a_process_that_the_log_does_not_describe_decides_as_usual(process: str) -> None:
    found = processes(started("p", probe_kills_per_minute=1))
    assert kills_per_minute(found.kind(process, "pleg")) == USUAL.probe_kills_per_minute


def test_settings_that_cannot_be_read_are_an_error() -> None:
    broken = kernel.ProcessStarted(process="p", kinds=["pleg"], settings={"node": 5}, settings_digest="d")
    with pytest.raises(ValueError, match=r"node|root_dir"):
        processes(entry(broken, "process/p"))
