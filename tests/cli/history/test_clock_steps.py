"""Times that commands show after the clock of a real redis-server was two hours ahead for a while."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from chronolet_schemas import kube_events
from chronolet_schemas.keys import Shard
from tests.cli.support.log_owner import LogOwner
from tests.support.redis.server import PrivateRedis, private_redis

HOUR = 3_600


@pytest.fixture
def server() -> Iterator[PrivateRedis]:
    with private_redis(clock=True) as redis:
        yield redis


def hours_ahead(text: str) -> int:
    """Return how many hours an ISO time is ahead of now, rounded so that a stall of the machine has no effect."""
    return round((datetime.fromisoformat(text).timestamp() - time.time()) / HOUR)


def test_times_are_right_again_without_waiting(server: PrivateRedis, tmp_path: Path) -> None:
    owner = LogOwner(server, tmp_path)
    stopping = kube_events.Recorded(
        object_kind="Pod", namespace="default", name="after", severity="Normal", reason="Killing", message="x"
    )
    try:
        owner.accept("before")
        server.step_clock(2 * HOUR)
        owner.accept("ahead")
        server.step_clock(0)
        owner.accept("after")
        owner.write(Shard("pod", 0), owner.record("pod/default/after", stopping))
        shown = [json.loads(line) for line in owner.run("log", "-o", "json").output.splitlines()]
        assert [hours_ahead(line["time"]) for line in shown] == [0, 0, 2, 0, 0]
        positions = [line["position"].split("-") for line in shown]
        assert [int(n) for _, n in positions] == [1, 2, 3, 4, 5]
        assert len({milliseconds for milliseconds, _ in positions[2:]}) == 1, "positions stand still"
        assert all("_time" not in line["data"] for line in shown)
        text = owner.run("log").output
        assert (text.count("\n"), "_time" in text) == (5, False)
        assert [hours_ahead(line.split()[0]) for line in text.splitlines()] == [0, 0, 2, 0, 0]
        (event,) = [json.loads(one) for one in (owner.run("events", "--all", "-o", "json").output,)]
        (event,) = event.get("items", [event])
        assert (hours_ahead(event["lastTimestamp"]), hours_ahead(event["firstTimestamp"])) == (0, 0)
        table = owner.run("events", "--all").output.splitlines()
        assert "Killing" in table[1]
        assert table[1].split()[0].endswith("s"), "seconds ago, neither in the future nor an hour ago"
    finally:
        owner.store.close()
