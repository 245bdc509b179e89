"""Routing of entries and commands, and the quarantine of those that cannot be routed."""

from typing import Any

import pytest

from chronolet_schemas import kernel
from chronolet_schemas.envelope import Record
from chronolet_schemas.keys import Shard
from tests.kernel import chore, mirror, tally
from tests.kernel.chore import Assign
from tests.kernel.rig import Rig, request


def _failing(_message: Any) -> tuple[str, ...]:
    raise KeyError("no such thing")


def test_a_command_whose_route_fails_is_quarantined_and_the_reader_continues(rig: Rig) -> None:
    def route(command: Any) -> tuple[str, ...]:
        return _failing(command) if command.key == "bad" else (command.key,)

    rig.process(chore.kind(commands={Assign: route}))
    bad = rig.send(Assign(request=request(), key="bad"))
    rig.send(Assign(request=request(), key="good"))
    rig.wait(chore.Assigned)
    (quarantined,) = rig.events(kernel.EntryQuarantined)
    assert (quarantined.at, quarantined.error) == (bad, "its route failed: KeyError: 'no such thing'")


def test_an_event_whose_route_fails_is_quarantined_once(rig: Rig) -> None:
    rig.process(chore.kind(subscribes={tally.Added: _failing}), tally.kind(1), mirror.kind(1))
    rig.send(tally.Add(request="1", key="a", number=1), "tally")
    rig.wait(mirror.Seen)
    (quarantined,) = rig.wait(kernel.EntryQuarantined)
    assert quarantined.message == "tally.Added@1"


def test_a_command_in_the_wrong_mailbox_is_quarantined(rig: Rig) -> None:
    """The sender assumes a different number of shards. An entity must not get two owners."""
    rig.set_shards("tally", 4)
    rig.process(tally.kind(4))
    rig.send_to(Shard("tally", 0), tally.Add(request="wrong", key="k1", number=1))
    rig.send(tally.Add(request="right", key="k1", number=1), "tally")
    rig.wait(tally.Added)
    (quarantined,) = rig.wait(kernel.EntryQuarantined)
    assert quarantined.at == "wrong"
    assert [entry.cause for entry in rig.log() if entry.type == "tally.Added@1"] == ["right"]


def test_foreign_data_is_quarantined_by_the_kind_that_watches_the_clock(rig: Rig) -> None:
    rig.process(chore.kind(watches_clock=True), tally.kind(1))
    with rig.server.changed:
        at = rig.server.append(Record("", "", "", "", "", b""))
        rig.server.changed.notify_all()
    (quarantined,) = rig.wait(kernel.EntryQuarantined)
    assert quarantined.at == str(at)
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    assert len(rig.events(kernel.EntryQuarantined)) == 1


def test_a_process_with_a_kind_that_no_log_has_does_not_start(rig: Rig) -> None:
    rig.set_shards("chore", 0)
    other = rig.process(chore.kind(), begin=False)
    with pytest.raises(ValueError, match="kinds chore: this node's log does not have them"):
        other.start()
