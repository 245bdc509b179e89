"""The contract of the runtime: output, notices, and the engine itself."""

import pytest

from chronolet.ports.runtime.runtime import (
    Refusal,
)
from tests.contracts.runtime.harness import EXIT_3, NODE, STOPS_ON_TERM, Harness, following
from tests.support.scratch import wait_until


def test_output_is_separated_by_stream(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), EXIT_3)
    harness.dead(container)
    assert harness.output(container) == {"stdout": b"out\n", "stderr": b"err\n"}


def test_notices_cover_the_life_of_a_container(harness: Harness) -> None:
    sandbox = harness.sandbox()
    with following(harness, {**NODE, "role": "app"}) as follower:
        container = harness.run(sandbox, EXIT_3)
        harness.dead(container)
        harness.runtime.remove(container)
        wait_until(lambda: len(follower.notices) == 4, "four notices")
        assert follower.actions(container) == ["create", "start", "die", "destroy"]
        died = follower.notices[2]
        assert (died.exit_code, died.labels["role"]) == (3, "app")
        assert died.at >= follower.notices[1].at > 0
        harness.runtime.remove(sandbox)  # no notice, because the sandbox does not have the label `role`
    assert follower.ends == [None]
    assert len(follower.notices) == 4


def test_a_kill_is_noticed_with_its_signal_before_the_death(harness: Harness) -> None:
    sandbox = harness.sandbox()
    with following(harness, {**NODE, "role": "app"}) as follower:
        container = harness.run(sandbox, STOPS_ON_TERM)
        harness.runtime.kill(container, "HUP")
        harness.runtime.kill(container)
        harness.dead(container)
        wait_until(lambda: "die" in follower.actions(container), "the notice of the death")
    assert follower.actions(container) == ["create", "start", "kill", "kill", "die"]
    assert [one.signal for one in follower.notices] == [0, 0, 1, 9, 0]


def test_notices_begin_at_the_given_time(harness: Harness) -> None:
    sandbox = harness.sandbox()
    container = harness.run(sandbox, STOPS_ON_TERM)
    started = harness.detail(container).created_at
    with following(harness, {**NODE, "role": "app"}, since=started) as follower:
        wait_until(lambda: follower.actions(container) == ["create", "start"], "the past notices")


def test_a_killed_engine_ends_the_stream_and_keeps_containers(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), STOPS_ON_TERM)
    before = harness.detail(container)
    with following(harness, NODE) as follower:
        harness.go_down()
        try:
            wait_until(lambda: bool(follower.ends), "the stream's end")
            with pytest.raises(Refusal) as refusal:
                harness.runtime.list(NODE)
        finally:
            harness.come_up()
    assert follower.ends[0] is not None
    assert (follower.ends[0].kind, refusal.value.kind) == ("unavailable", "unavailable")
    assert harness.detail(container).started_at == before.started_at
    assert harness.detail(container).state == "running"


def test_an_engine_identifies_itself(harness: Harness) -> None:
    engine = harness.runtime.engine()
    assert engine.id == harness.runtime.engine().id != ""
    assert engine.name
    assert engine.version
    assert engine.api_version
