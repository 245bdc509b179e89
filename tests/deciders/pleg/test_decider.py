"""Observations of containers become events: each once, in the order of a container's life."""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import given as with_data
from hypothesis import settings
from hypothesis import strategies as st
from msgspec.structs import replace

from chronolet.kernel.decider import Due
from chronolet.pleg import signals, wanted
from chronolet.pleg.containers.observations import Sent, noticed
from chronolet.pleg.decider import DECIDER, MOST_EVENTS, decider
from chronolet.ports.runtime.labels import Owner
from chronolet.ports.runtime.runtime import Notice
from chronolet_schemas import pleg
from chronolet_schemas.envelope import Event
from tests.deciders.given import Scene, given

REF: dict[str, Any] = {"pod": "default/web", "uid": "u1", "container": "app", "attempt": 0, "id": "a0"}
T0 = 1_700_000_000_000
THRESHOLD = 180_000

STARTED = pleg.ContainerStarted(started_at=T0, **REF)
DIED = pleg.ContainerDied(exit_code=1, reason="Error", started_at=T0, finished_at=T0 + 500, **REF)
WORKS = pleg.RelistWorking(containers=1)

Action = Literal["start", "die", "destroy", "oom"]
State = Literal["created", "running", "exited", "removed", "unknown"]


def notice(
    action: Action,
    at: int = T0,
    *,
    container_id: str = "a0",
    exit_code: int = 0,
) -> signals.ContainerObserved | signals.OomKilled:
    """Return the signal that the worker sends for a line of the event stream."""
    owner = Owner(pod=REF["pod"], uid=REF["uid"], container=REF["container"], attempt=REF["attempt"])
    signal = noticed(Notice(action=action, id=container_id, labels={}, at=at, exit_code=exit_code), owner)
    assert signal is not None
    return signal


def observed(state: State, **fields: Any) -> signals.ContainerObserved:
    return signals.ContainerObserved(state=state, **{**REF, **fields})


def listed(state: State, **fields: Any) -> signals.Relisted:
    return signals.Relisted(began_at=T0, count=1, observed=(observed(state, **fields),))


def failed() -> signals.RelistFailed:
    return signals.RelistFailed(error="no socket", last_listed_at=T0, threshold_milliseconds=THRESHOLD)


def pleg_with(*events: Event) -> Scene:
    return given(DECIDER, WORKS, *events)


def test_two_standing_effects_always_run() -> None:
    scene = given(DECIDER, STARTED)
    assert list(scene.effects) == ["stream", "relist"]
    relist = scene.effects["relist"]
    assert isinstance(relist, wanted.Relist)
    assert (relist.known, relist.period_seconds) == (("a0",), 1)
    assert scene.due is None


def test_notices_of_a_start_and_a_death_become_events() -> None:
    scene = pleg_with().when(notice("start")).then(STARTED)
    scene.when(notice("start")).then()
    scene.when(notice("die", T0 + 500, exit_code=1)).then(DIED)
    scene.when(notice("die", T0 + 500, exit_code=1)).then()
    scene.when(notice("destroy", T0 + 600)).then(pleg.ContainerRemoved(**REF))
    assert len(scene.state.containers) == 0
    scene.when(notice("destroy", T0 + 600)).then()


def test_a_death_is_recorded_without_a_notice_of_the_start() -> None:
    pleg_with().when(observed("exited", started_at=T0, finished_at=T0 + 500)).then(
        pleg.ContainerDied(exit_code=0, reason="Completed", started_at=T0, finished_at=T0 + 500, **REF)
    )


def test_a_late_notice_of_the_start_is_ignored_after_the_death() -> None:
    pleg_with(STARTED, DIED).when(notice("start", T0 + 3)).then()
    pleg_with(STARTED, DIED).when(listed("running", started_at=T0)).then()
    pleg_with(STARTED, DIED).when(listed("created")).then()


def test_a_start_after_the_end_is_a_new_run() -> None:
    scene = pleg_with(STARTED, DIED).when(notice("start", T0 + 900))
    scene.then(pleg.ContainerStarted(started_at=T0 + 900, **REF))
    scene.when(notice("die", T0 + 500)).then()
    assert scene.state.containers["a0"].state == "running"


def test_a_start_before_the_known_end_is_a_new_run_if_the_clock_was_set_back() -> None:
    hour = 3_600_000
    long = pleg.ContainerDied(exit_code=1, reason="Error", started_at=T0, finished_at=T0 + 60_000, **REF)
    scene = pleg_with(STARTED, long).when(listed("running", started_at=T0 - hour))
    scene.then(pleg.ContainerStarted(started_at=T0 - hour, **REF))
    # A listing that began before that is outdated, and a repeated observation is not news.
    scene.when(listed("running", started_at=T0 + 7)).then()
    scene.when(listed("running", started_at=T0 - hour)).then()
    pleg_with(STARTED, long).when(listed("running", started_at=T0 + 5000)).then(
        pleg.ContainerStarted(started_at=T0 + 5000, **REF)
    )
    pleg_with(STARTED).when(listed("running", started_at=T0 - hour)).then(
        pleg.ContainerStarted(started_at=T0 - hour, **REF)
    )
    again = {"exit_code": 2, "reason": "Error", "started_at": T0 - hour, "finished_at": T0 - hour + 9}
    dead = pleg_with(STARTED, long).when(listed("exited", **again)).then(pleg.ContainerDied(**again, **REF))
    dead.when(listed("exited", **again)).then()


def test_a_crash_whose_notice_was_delayed_is_recorded_once() -> None:
    """On an overloaded machine the engine writes the notice of a start long after the start."""
    scene = pleg_with(STARTED, DIED)
    scene.when(listed("exited", exit_code=1, reason="Error", started_at=T0 - 30_000, finished_at=T0 + 500)).then()
    scene.when(listed("running", started_at=0)).then()
    scene.when(listed("running", started_at=T0 + 400, detailed=False)).then()


def test_a_new_run_that_has_already_ended_is_another_death() -> None:
    pleg_with(STARTED, DIED).when(
        listed("exited", exit_code=2, reason="Error", started_at=T0 + 900, finished_at=T0 + 950)
    ).then(pleg.ContainerDied(exit_code=2, reason="Error", started_at=T0 + 900, finished_at=T0 + 950, **REF))


def test_a_death_without_an_end_time_is_identified_by_its_start() -> None:
    dead = pleg.ContainerDied(exit_code=1, reason="Error", started_at=T0, finished_at=0, **REF)
    pleg_with(dead).when(listed("running", started_at=T0)).then()
    pleg_with(dead).when(listed("running", started_at=T0 + 1)).then(pleg.ContainerStarted(started_at=T0 + 1, **REF))


def test_a_running_container_found_with_a_later_start_is_a_new_run() -> None:
    scene = pleg_with(STARTED)
    scene.when(listed("running", started_at=T0 + 20)).then()
    scene.when(listed("running", started_at=T0 + 60_000, detailed=False)).then()
    scene.when(listed("running", started_at=T0 + 60_000)).then(pleg.ContainerStarted(started_at=T0 + 60_000, **REF))


def test_a_listing_without_changes_yields_no_events() -> None:
    pleg_with(STARTED).when(listed("running", started_at=T0)).then()
    pleg_with(STARTED).when(signals.Relisted(began_at=T0, count=1)).then()


def test_the_first_listing_and_the_first_after_a_failure_are_recorded() -> None:
    scene = given(DECIDER).when(signals.Relisted(began_at=T0, count=3)).then(pleg.RelistWorking(containers=3))
    scene.when(failed(), at=T0 + 10).then(
        pleg.RelistFailing(error="no socket", last_listed_at=T0, threshold_milliseconds=THRESHOLD)
    )
    scene.when(failed(), at=T0 + 20).then()
    scene.when(signals.Relisted(began_at=T0, count=0)).then(pleg.RelistWorking(containers=0))
    assert scene.due is None


def test_pleg_is_unhealthy_after_the_threshold_until_a_listing_succeeds() -> None:
    scene = pleg_with().when(failed(), at=T0 + 10)
    assert scene.due == T0 + THRESHOLD + 1, "a listing as old as the threshold still counts"
    scene.when(Due(at=T0 + THRESHOLD + 1), at=T0 + THRESHOLD + 2000).then(
        pleg.Unhealthy(message="pleg was last seen active 3m2s ago; threshold is 3m0s")
    )
    assert scene.due is None
    scene.when(failed(), at=T0 + THRESHOLD + 3000).then()
    scene.when(signals.Relisted(began_at=T0, count=2)).then(pleg.RelistWorking(containers=2), pleg.Healthy())
    scene.when(signals.Relisted(began_at=T0, count=2)).then()


def test_pleg_is_unhealthy_if_no_listing_has_ever_succeeded() -> None:
    never = signals.RelistFailed(error="no socket", threshold_milliseconds=THRESHOLD)
    scene = (
        given(DECIDER)
        .when(never, at=T0)
        .then(
            pleg.RelistFailing(error="no socket", threshold_milliseconds=THRESHOLD),
            pleg.Unhealthy(message="pleg has yet to be successful"),
        )
    )
    assert scene.due is None


def test_a_pod_becomes_unreadable_once_and_readable_once() -> None:
    unread = signals.Relisted(
        began_at=T0, count=1, unread=(signals.Unread(pod="default/web", uid="u1", error="timed out"),)
    )
    unreadable = pleg.PodUnreadable(pod="default/web", uid="u1", error="timed out")
    scene = pleg_with().when(unread).then(unreadable)
    scene.when(unread).then()
    scene.when(listed("running", started_at=T0)).then(
        STARTED, pleg.PodReadable(pod="default/web", uid="u1", changed=True)
    )
    scene.when(unread).then(unreadable)
    scene.when(listed("running", started_at=T0)).then(pleg.PodReadable(pod="default/web", uid="u1", changed=False))
    assert len(scene.state.unread) == 0


def test_a_partial_listing_changes_nothing_for_pods_that_it_does_not_name() -> None:
    other = signals.Unread(pod="default/db", uid="u2", error="timed out")
    one = signals.Unread(pod="default/web", uid="u1", error="timed out")
    scene = pleg_with().when(signals.Relisted(began_at=T0, count=2, unread=(other,)))
    part = signals.Relisted(began_at=T0, count=2, unread=(one,), partial=True)
    scene.when(part).then(pleg.PodUnreadable(pod="default/web", uid="u1", error="timed out"))
    scene.when(signals.Relisted(began_at=T0, count=2, unread=(one, other))).then()

    scene = given(DECIDER).when(signals.Relisted(began_at=T0, count=2, partial=True)).then()
    scene.when(signals.Relisted(began_at=T0, count=2)).then(pleg.RelistWorking(containers=2))


def test_events_beyond_the_limit_of_a_step_are_put_off_to_the_next_full_listing() -> None:
    many = tuple(observed("running", started_at=T0, id=f"c{number}") for number in range(MOST_EVENTS + 2))
    scene = pleg_with()
    before = scene.effects["relist"].intent
    scene.when(signals.Relisted(began_at=T0, count=len(many), observed=many))
    assert scene.only(pleg.EventsPutOff) == pleg.EventsPutOff(count=2)
    assert len(scene.state.containers) == MOST_EVENTS
    assert scene.effects["relist"].intent != before, "the listing starts over"
    scene.when(signals.Relisted(began_at=T0, count=len(many), observed=many))
    assert scene.kinds == ["ContainerStarted"] * 2


def test_opening_and_loss_of_the_stream_are_each_recorded_once() -> None:
    scene = given(DECIDER).when(signals.StreamBroken(error="refused")).then(pleg.StreamLost(error="refused"))
    scene.when(signals.StreamBroken(error="refused")).then()
    scene.when(signals.StreamOpened(server="Docker 24")).then(pleg.StreamFollowed(server="Docker 24"))
    scene.when(signals.StreamBroken(error="end")).then(pleg.StreamLost(error="end"))
    assert scene.state.stream == "lost"


def test_a_container_that_vanished_while_running_died_for_an_unknown_reason() -> None:
    scene = pleg_with(STARTED).when(listed("removed"))
    scene.then(
        pleg.ContainerDied(exit_code=137, reason="ContainerStatusUnknown", started_at=T0, finished_at=0, **REF),
        pleg.ContainerRemoved(**REF),
    )
    assert len(scene.state.containers) == 0


def test_a_removed_container_keeps_the_identity_that_the_log_has() -> None:
    unidentified = listed("removed", pod="", uid="", container="", attempt=0)
    pleg_with(STARTED, DIED).when(unidentified).then(pleg.ContainerRemoved(**REF))


ADOPT = pleg.AdoptContainers(request="adopt/r", running=(pleg.RunningContainer(started_at=T0, **REF),))


def test_an_adopted_container_is_listed_anew_and_dead_if_it_is_gone() -> None:
    scene = given(DECIDER).when(ADOPT).then(STARTED, pleg.ContainersAdopted(running=1))
    relist = scene.effects["relist"]
    assert isinstance(relist, wanted.Relist)
    assert (relist.known, relist.intent) == (("a0",), "relist/1"), "the listing starts over"
    scene.when(listed("removed", pod="", uid="", container="", attempt=0))
    assert scene.only(pleg.ContainerDied).reason == "ContainerStatusUnknown"


def test_adopting_a_known_container_yields_no_container_event() -> None:
    pleg_with(STARTED, DIED).when(ADOPT).then(pleg.ContainersAdopted(running=1))
    given(DECIDER).when(pleg.AdoptContainers(request="adopt/r", running=())).then(pleg.ContainersAdopted(running=0))


def test_a_dead_container_that_vanished_is_only_removed() -> None:
    pleg_with(STARTED, DIED).when(listed("removed")).then(pleg.ContainerRemoved(**REF))


def test_a_dead_container_in_an_unknown_state_does_not_die_again() -> None:
    scene = pleg_with(STARTED, DIED).when(listed("unknown")).then()
    scene.when(listed("removed")).then(pleg.ContainerRemoved(**REF))


def test_a_creation_is_recorded_once() -> None:
    scene = pleg_with().when(listed("created")).then(pleg.ContainerChanged(state="created", **REF))
    scene.when(listed("created")).then()
    scene.when(listed("running", started_at=T0)).then(STARTED)


def test_an_unknown_state_is_recorded_once_and_the_return_from_it_is_news() -> None:
    scene = pleg_with(STARTED).when(listed("unknown")).then(pleg.ContainerChanged(state="unknown", **REF))
    scene.when(listed("unknown")).then()
    scene.when(listed("running", started_at=T0)).then(STARTED)
    scene.when(listed("unknown"))
    scene.when(listed("exited", exit_code=1, finished_at=T0 + 500)).then(DIED)
    scene.when(listed("unknown")).then()
    scene.when(listed("running", started_at=T0)).then()


def test_a_container_first_seen_in_an_unknown_state() -> None:
    scene = pleg_with().when(listed("unknown")).then(pleg.ContainerChanged(state="unknown", **REF))
    scene.when(listed("created")).then(pleg.ContainerChanged(state="created", **REF))
    scene.when(listed("removed"))
    assert [type(event).__name__ for event in scene.events] == ["ContainerDied", "ContainerRemoved"]


def test_an_oom_kill_is_the_reason_of_the_death() -> None:
    scene = pleg_with(STARTED).when(notice("oom")).then(pleg.OutOfMemory(**REF))
    scene.when(notice("oom")).then()
    scene.when(notice("die", T0 + 500, exit_code=137))
    assert scene.only(pleg.ContainerDied).reason == "OOMKilled"
    assert scene.state.out_of_memory == frozenset()


def test_an_oom_kill_of_a_child_process_is_not_the_reason_of_the_death() -> None:
    scene = pleg_with(STARTED).when(notice("oom")).when(notice("die", T0 + 500, exit_code=1))
    assert scene.only(pleg.ContainerDied).reason == "Error"


def test_a_death_has_the_signals_that_were_sent_before_it() -> None:
    owner = Owner(pod=REF["pod"], uid=REF["uid"], container=REF["container"], attempt=REF["attempt"])
    died = noticed(Notice(action="die", id="a0", labels={}, at=T0 + 500, exit_code=137), owner, Sent((15, 9), T0 + 400))
    assert died is not None
    dead = pleg_with(STARTED).when(died).only(pleg.ContainerDied)
    assert (dead.sent, dead.sent_at) == ((15, 9), T0 + 400)


def test_the_signals_before_a_death_that_a_listing_found_are_unknown() -> None:
    scene = pleg_with(STARTED).when(listed("exited", exit_code=137, started_at=T0, finished_at=T0 + 500))
    assert scene.only(pleg.ContainerDied).sent is None


def test_an_oom_kill_of_an_unknown_container_is_ignored() -> None:
    pleg_with().when(notice("oom")).then()


def test_events_of_other_containers_and_kinds_change_nothing() -> None:
    state = given(DECIDER, STARTED).state
    assert DECIDER.evolve(state, pleg.ContainerRemoved(**{**REF, "id": "other"})) == state
    assert DECIDER.evolve(state, Event()) == state


def test_a_node_becomes_not_ready_once_pleg_is_unhealthy() -> None:
    scene = given(decider("node-1"), WORKS).when(failed(), at=T0 + THRESHOLD + 1_000)
    assert scene.kinds == ["RelistFailing", "Unhealthy"]
    (recorded,) = scene.recorded
    assert (recorded.object_kind, recorded.name, recorded.severity) == ("Node", "node-1", "Normal")
    scene.then_kube_events(("NodeNotReady", "Node node-1 status is now: NodeNotReady"))
    scene.when(signals.Relisted(began_at=T0, count=3))
    scene.then_kube_events(("NodeReady", "Node node-1 status is now: NodeReady"))


def test_the_first_listing_makes_a_node_ready() -> None:
    scene = given(decider("node-1")).when(signals.Relisted(began_at=T0, count=3))
    scene.then_kube_events(("NodeReady", "Node node-1 status is now: NodeReady"))
    scene.when(failed(), at=T0 + 10).when(signals.Relisted(began_at=T0 + 20, count=3)).then_kube_events()
    ill = given(decider("node-1")).when(signals.RelistFailed(error="no socket", threshold_milliseconds=THRESHOLD))
    ill.then_kube_events(("NodeNotReady", "Node node-1 status is now: NodeNotReady"))
    ill.when(signals.Relisted(began_at=T0, count=3)).then_kube_events(
        ("NodeReady", "Node node-1 status is now: NodeReady")
    )


def test_the_engine_is_recorded_with_its_address() -> None:
    opened = signals.StreamOpened(server="x", endpoint="unix:///a.sock", engine_id="E1")
    scene = given(DECIDER).when(opened)
    scene.then(pleg.StreamFollowed(server="x", endpoint="unix:///a.sock", engine_id="E1"))
    assert (scene.state.endpoint, scene.state.engine_id) == ("unix:///a.sock", "E1")
    scene.when(signals.StreamOpened(server="x"))
    assert (scene.state.endpoint, scene.state.engine_id) == ("unix:///a.sock", "E1"), "an older release reports neither"
    scene.when(replace(opened, endpoint="unix:///b.sock", engine_id=""))
    assert (scene.state.endpoint, scene.state.engine_id) == ("unix:///b.sock", "")


def test_a_start_of_the_agent_and_a_reboot_are_recorded() -> None:
    first = signals.StreamOpened(server="x", first=True, boot_id="b1")
    scene = given(decider("node-1")).when(first).then_kube_events(("Starting", "Starting chronolet."))
    scene.then(pleg.StreamFollowed(server="x", first=True, boot_id="b1"))
    scene.when(signals.StreamOpened(server="x", boot_id="b1")).then_kube_events()
    scene.when(first).then_kube_events(("Starting", "Starting chronolet."))
    scene.when(signals.StreamOpened(server="x", first=True)).when(replace(first, boot_id="b2")).then_kube_events(
        ("Starting", "Starting chronolet."), ("Rebooted", "Node node-1 has been rebooted, boot id: b2")
    )
    assert [one.severity for one in scene.recorded] == ["Normal", "Warning"]


def test_an_unreadable_pod_has_a_kube_event() -> None:
    unread = signals.Unread(pod="default/web", uid="u1", error="timed out")
    scene = pleg_with().when(signals.Relisted(began_at=T0, count=1, unread=(unread,)))
    scene.then_kube_events(("FailedSync", "error determining status: timed out"))
    (recorded,) = scene.recorded
    assert (recorded.object_kind, recorded.namespace, recorded.name, recorded.uid) == ("Pod", "default", "web", "u1")


MESSAGES = st.one_of(
    st.builds(
        notice,
        st.sampled_from(("start", "die", "destroy", "oom")),
        at=st.integers(T0, T0 + 50),
        container_id=st.sampled_from(("a0", "a1", "a2")),
        exit_code=st.sampled_from((0, 1, 137)),
    ),
    st.builds(
        observed,
        st.sampled_from(("running", "exited")),
        id=st.sampled_from(("a0", "a1", "a2")),
        exit_code=st.sampled_from((0, 1, 137)),
        started_at=st.sampled_from((0, T0, T0 + 20)),
        finished_at=st.integers(T0, T0 + 50),
    ),
    st.builds(
        listed,
        st.sampled_from(("created", "running", "exited", "removed", "unknown")),
        id=st.sampled_from(("a0", "a1", "a2")),
        started_at=st.sampled_from((0, T0, T0 + 20, T0 + 9000)),
        finished_at=st.sampled_from((0, T0 + 10, T0 + 9500)),
        detailed=st.booleans(),
    ),
    st.just(signals.StreamOpened(server="x")),
    st.just(signals.StreamBroken(error="x")),
    st.just(signals.RelistFailed(error="x")),
)


@settings(max_examples=150, deadline=None)
@with_data(st.lists(MESSAGES, max_size=40))
def test_random_signals_leave_a_bounded_table_and_no_event_twice(messages: list[Any]) -> None:
    scene = given(DECIDER)
    for message in messages:
        scene.when(message)
        again = [event for event in DECIDER.decide(scene.state, message, 0) if isinstance(event, pleg.ContainerEvent)]
        assert again == []
    for one in ("a0", "a1", "a2"):
        scene.when(listed("removed", id=one))
    assert (len(scene.state.containers), scene.state.out_of_memory) == (0, frozenset())


def test_an_end_recorded_before_its_start_is_an_end() -> None:
    died = pleg.ContainerDied(exit_code=0, reason="Completed", started_at=T0 - 8, finished_at=T0 - 24, **REF)
    pleg_with(STARTED).when(
        listed("exited", exit_code=0, reason="Completed", started_at=T0 - 8, finished_at=T0 - 24, detailed=True)
    ).then(died)


def test_the_end_of_an_earlier_run_is_no_news() -> None:
    earlier = {"started_at": T0 - 9000, "finished_at": T0 - 5000}
    pleg_with(STARTED).when(listed("exited", detailed=True, **earlier)).then()
