"""When and for how long kills for failed probes are held back, and that each is released or dropped."""

from __future__ import annotations

from typing import Any

import pytest

from chronolet.kernel.decider import Due
from chronolet.pleg.actor import kind
from chronolet.pleg.decider import decider
from chronolet.pleg.probe_kills.holding_back import NOTED_MS, WINDOW_MS, Policy
from chronolet.pleg.state import State
from chronolet_schemas import pleg, prober
from tests.deciders.given import Scene, given

POLICY = Policy(kills_per_minute=10, hold_milliseconds=60_000)


def ref(pod: str) -> dict[str, Any]:
    return {"pod": f"default/{pod}", "uid": f"u-{pod}", "container": "app", "probe": "Liveness"}


def run(pod: str) -> dict[str, Any]:
    return {**ref(pod), "id": f"k-{pod}", "started_at": 7}


def requested(pod: str, *short_of: prober.Shortage) -> prober.KillAsked:
    return prober.KillAsked(attempt=0, consecutive=3, threshold=3, short_of=short_of or ("cpu",), **run(pod))


def unjudged(pod: str, *short_of: prober.Shortage) -> prober.ProbeUnjudged:
    return prober.ProbeUnjudged(
        id=f"k-{pod}",
        at=1,
        milliseconds=1_000,
        consecutive=1,
        for_milliseconds=0,
        stalled_milliseconds=900,
        short_of=short_of,
        **ref(pod),
    )


def withdrawn(pod: str) -> prober.KillWithdrawn:
    return prober.KillWithdrawn(**run(pod))


def scene(policy: Policy = POLICY) -> Scene:
    return given(decider("n1", policy))


def held_back(*pods: str, policy: Policy = POLICY, at: int = 1_000) -> Scene:
    """Create a scene after kill requests for these pods (three by default) at the same time."""
    story = scene(policy)
    for pod in pods or ("a", "b", "c"):
        story.when(requested(pod), at=at)
    return story


def due(story: Scene) -> int | None:
    return story.decider.due(story.state)


def fired(story: Scene) -> Scene:
    at = due(story)
    assert at is not None
    return story.when(Due(at=at), at=at)


def test_pleg_subscribes_to_the_probers_events() -> None:
    routes = kind().subscribes
    assert {route(requested("a"))[0] for route in routes.values()} == {"node"}
    assert set(routes) == {prober.ProbeUnjudged, prober.KillAsked, prober.KillWithdrawn}


def test_the_kill_of_one_pod_is_released_immediately() -> None:
    story = scene().when(requested("a"), at=1_000)
    story.then(
        pleg.ProbeTroubleNoted(pod="default/a", at=1_000, short_of=("cpu",)),
        pleg.ProbeKillReleased(at=1_000, **run("a")),
    )
    story.when(requested("a"), at=1_001).then(pleg.ProbeKillReleased(at=1_001, **run("a")))
    story.when(requested("b"), at=2_000)
    assert story.kinds == ["ProbeTroubleNoted", "ProbeKillReleased"]
    assert due(story) is None


def test_trouble_of_three_pods_at_a_time_holds_kills_back() -> None:
    story = scene()
    for pod in ("a", "b"):
        story.when(unjudged(pod, "io"), at=1_000)
        story.then(pleg.ProbeTroubleNoted(pod=f"default/{pod}", at=1_000, short_of=("io",))).then_kube_events()
    story.when(requested("c", "cpu", "io"), at=2_000).then(
        pleg.ProbeTroubleNoted(pod="default/c", at=2_000, short_of=("cpu", "io")),
        pleg.ProbeKillsHeldBack(at=2_000, pods=3, short_of=("cpu", "io"), kills_per_minute=10),
        pleg.ProbeKillHeld(at=2_000, **run("c")),
    )
    text = (
        "Probes of 3 pods failed at the same time while the machine was short of CPU, disk I/O: containers are stopped "
        "for failed probes only after a delay, at most 10 per minute"
    )
    story.then_kube_events(("ProbeKillsHeldBack", text))
    assert (story.recorded[0].object_kind, story.recorded[0].name) == ("Node", "n1")


def test_trouble_at_different_times_or_without_a_shortage_holds_nothing_back() -> None:
    story = scene()
    for n, pod in enumerate(("a", "b", "c", "d")):
        story.when(requested(pod), at=1_000 + n * WINDOW_MS)
        assert "ProbeKillReleased" in story.kinds
    story = scene()
    for pod in ("a", "b", "c"):
        story.when(unjudged(pod), at=1_000).then()
    assert story.state == State()


def test_trouble_of_one_pod_is_recorded_at_intervals() -> None:
    story = scene().when(unjudged("a", "cpu"), at=1_000)
    story.when(unjudged("a", "cpu"), at=1_000 + NOTED_MS - 1).then()
    story.when(unjudged("a", "cpu"), at=1_000 + NOTED_MS)
    assert story.kinds == ["ProbeTroubleNoted"]
    story.when(unjudged("b", "cpu"), at=200_000)
    assert set(story.state.probe_kills.troubled) == {"default/b"}, "old trouble is forgotten"


def test_trouble_of_all_pods_is_recorded_together_while_kills_are_held_back() -> None:
    story = held_back()
    story.when(unjudged("d", "cpu"), at=2_000).then()
    story.when(unjudged("e", "cpu"), at=1_000 + NOTED_MS)
    assert story.kinds == ["ProbeTroubleNoted"]
    assert story.state.probe_kills.troubled_at == 1_000 + NOTED_MS


def test_held_kills_are_released_after_their_hold_one_per_interval() -> None:
    story = scene()
    for pod in ("x", "y", "a", "b", "c"):
        story.when(unjudged(pod, "cpu"), at=1_000)
    for n, pod in enumerate(("c", "b", "a")):
        story.when(requested(pod), at=1_000 + n)
    seen = []
    while story.state.probe_kills.held:
        fired(story)
        (released,) = story.facts
        assert isinstance(released, pleg.ProbeKillReleased)
        seen.append((released.pod, released.at, released.held_milliseconds))
    assert seen == [
        ("default/c", 61_000, 60_000),
        ("default/b", 67_000, 65_999),
        ("default/a", 73_000, 71_998),
    ]


def test_a_large_node_also_holds_kills_back_for_three_pods_and_releases_few_per_minute() -> None:
    """All 250 pods of a node begin to time out together, and all their kills are requested at the same time."""
    pods = [f"p{n}" for n in range(250)]
    story = scene()
    for pod in pods[:3]:
        story.when(unjudged(pod, "cpu"), at=1_000)
    for at in range(1_000, 61_000, NOTED_MS):
        story.when(unjudged("p0", "cpu"), at=at)
    for pod in pods:
        story.when(requested(pod), at=61_000)
        assert story.kinds[-1] == "ProbeKillHeld", "the kill was released instead of held"
    released = []
    while story.state.probe_kills.held:
        fired(story)
        released += [event.at for event in story.facts if isinstance(event, pleg.ProbeKillReleased)]
    assert len(released) == len(pods)
    assert released[0] == 61_000 + POLICY.hold_milliseconds
    most = max(sum(begin <= at < begin + 60_000 for at in released) for begin in released)
    assert most == POLICY.kills_per_minute


@pytest.mark.parametrize("count", [3, 40])
def test_the_last_of_many_kills_waits_no_longer_than_documented(count: int) -> None:
    story = held_back(*(f"p{n}" for n in range(count)))
    waits = []
    while story.state.probe_kills.held:
        fired(story)
        waits += [event.held_milliseconds for event in story.facts if isinstance(event, pleg.ProbeKillReleased)]
    assert len(waits) == count - 2, "the first two were released immediately"
    assert max(waits) <= POLICY.hold_milliseconds + len(waits) * POLICY.interval


def test_the_next_kill_follows_a_withdrawn_one() -> None:
    story = scene()
    for pod in ("a", "b", "c"):
        story.when(unjudged(pod, "cpu"), at=1_000)
    for pod in ("a", "b"):
        story.when(requested(pod), at=1_000)
    story.when(withdrawn("a"), at=5_000).then(pleg.ProbeKillDropped(at=5_000, **run("a")))
    story.when(withdrawn("a"), at=5_001).then()
    fired(story).then(pleg.ProbeKillReleased(at=61_000, held_milliseconds=60_000, **run("b")))


def test_the_hold_back_ends_without_kills_and_recent_trouble() -> None:
    story = held_back()
    fired(story).then(pleg.ProbeKillReleased(at=61_000, held_milliseconds=60_000, **run("c")))
    story.when(unjudged("b", "cpu"), at=62_000)
    assert due(story) == 62_000 + WINDOW_MS
    fired(story).then(pleg.ProbeKillsResumed(at=92_000, released=1, dropped=0))
    text = (
        "Containers are stopped for failed probes immediately again; of the stops that were held back 1 were "
        "carried out and 0 dropped"
    )
    story.then_kube_events(("ProbeKillsResumed", text))
    assert due(story) is None
    story.when(requested("a"), at=92_001)
    assert story.only(pleg.ProbeKillReleased).held_milliseconds == 0


def test_without_protection_held_kills_are_released_and_none_is_held() -> None:
    off = Policy(kills_per_minute=0)
    story = held_back("a", "b", "c", policy=off)
    story.then(pleg.ProbeKillReleased(at=1_000, **run("c")))
    assert story.state.probe_kills.since == 0
    before = held_back("a", "b", "c", "d")
    after = given(decider("n1", off), *before.history)
    assert due(after) == 1_000
    after.when(Due(at=1_000), at=9_000)
    assert after.kinds == ["ProbeKillReleased", "ProbeKillReleased", "ProbeKillsResumed"]
    assert after.only(pleg.ProbeKillsResumed).released == 2
    assert due(after) is None


def test_due_kills_and_plegs_health_do_not_affect_each_other() -> None:
    story = held_back()
    failing = pleg.RelistFailing(error="away", last_listed_at=1_000, threshold_milliseconds=180_000)
    both = given(story.decider, *story.history, failing)
    fired(both)
    assert both.kinds == ["ProbeKillReleased"]
    fired(both)
    assert both.kinds == ["ProbeKillsResumed"]
    fired(both)
    assert both.kinds == ["Unhealthy"]
    assert due(both) is None
