"""Notices and listings become facts: each once, in the order of a container's life."""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import given as with_data
from hypothesis import settings
from hypothesis import strategies as st
from msgspec.structs import replace

from chronolet.kernel.decider import Due
from chronolet.pleg import signals, wanted
from chronolet.pleg.decider import DECIDER, MOST_EVENTS, decider
from chronolet_schemas import pleg
from chronolet_schemas.envelope import Event
from tests.deciders.given import Scene, given

WHO: dict[str, Any] = {"pod": "default/web", "uid": "u1", "container": "app", "attempt": 0, "id": "a0"}
T0 = 1_700_000_000_000
THRESHOLD = 180_000

STARTED = pleg.ContainerStarted(started_at=T0, **WHO)
DIED = pleg.ContainerDied(exit_code=1, reason="Error", started_at=T0, finished_at=T0 + 500, **WHO)
WORKS = pleg.RelistWorking(containers=1)

Action = Literal["create", "start", "die", "destroy", "oom"]
State = Literal["created", "running", "exited", "removed", "unknown"]


def notice(action: Action, at: int = T0, **fields: Any) -> signals.Noticed:
    return signals.Noticed(action=action, at=at, **{**WHO, **fields})


def listed(state: State, **fields: Any) -> signals.Relisted:
    return signals.Relisted(began_at=T0, count=1, seen=(signals.Seen(state=state, **{**WHO, **fields}),))


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


def test_a_start_and_a_death_by_notices() -> None:
    scene = pleg_with().when(notice("create")).then()
    scene.when(notice("start")).then(STARTED)
    scene.when(notice("start")).then()
    scene.when(notice("die", T0 + 500, exit_code=1)).then(DIED)
    scene.when(notice("die", T0 + 500, exit_code=1)).then()
    scene.when(notice("destroy", T0 + 600)).then(pleg.ContainerRemoved(**WHO))
    assert len(scene.state.containers) == 0
    scene.when(notice("destroy", T0 + 600)).then()


def test_a_death_implies_the_start_that_nobody_saw() -> None:
    pleg_with().when(notice("die", T0 + 500, exit_code=0, started_at=T0)).then(
        pleg.ContainerDied(exit_code=0, reason="Completed", started_at=T0, finished_at=T0 + 500, **WHO)
    )


def test_a_late_start_does_not_wake_the_dead() -> None:
    pleg_with(STARTED, DIED).when(notice("start", T0 + 3)).then()
    pleg_with(STARTED, DIED).when(listed("running", started_at=T0)).then()
    pleg_with(STARTED, DIED).when(listed("created")).then()


def test_a_start_after_the_end_is_a_new_run() -> None:
    scene = pleg_with(STARTED, DIED).when(notice("start", T0 + 900))
    scene.then(pleg.ContainerStarted(started_at=T0 + 900, **WHO))
    scene.when(notice("die", T0 + 500, finished_at=T0 + 500)).then()
    assert scene.state.containers["a0"].state == "running"


def test_a_start_before_the_known_end_is_a_new_run_where_the_clock_was_set_back() -> None:
    hour = 3_600_000
    long = pleg.ContainerDied(exit_code=1, reason="Error", started_at=T0, finished_at=T0 + 60_000, **WHO)
    scene = pleg_with(STARTED, long).when(listed("running", started_at=T0 - hour))
    scene.then(pleg.ContainerStarted(started_at=T0 - hour, **WHO))
    # What a listing saw that began before that is old, and the same again is no news.
    scene.when(listed("running", started_at=T0 + 7)).then()
    scene.when(listed("running", started_at=T0 - hour)).then()
    pleg_with(STARTED, long).when(listed("running", started_at=T0 + 5000)).then(
        pleg.ContainerStarted(started_at=T0 + 5000, **WHO)
    )
    pleg_with(STARTED).when(listed("running", started_at=T0 - hour)).then(
        pleg.ContainerStarted(started_at=T0 - hour, **WHO)
    )
    again = {"exit_code": 2, "reason": "Error", "started_at": T0 - hour, "finished_at": T0 - hour + 9}
    dead = pleg_with(STARTED, long).when(listed("exited", **again)).then(pleg.ContainerDied(**again, **WHO))
    dead.when(listed("exited", **again)).then()


def test_one_crash_is_told_once_though_its_notice_was_written_late() -> None:
    """On a starved machine the engine writes the notice of a start long after the start."""
    scene = pleg_with(STARTED, DIED)
    scene.when(listed("exited", exit_code=1, reason="Error", started_at=T0 - 30_000, finished_at=T0 + 500)).then()
    scene.when(listed("running", started_at=0)).then()
    scene.when(listed("running", started_at=T0 + 400, detailed=False)).then()


def test_a_new_run_that_is_over_already_is_another_death() -> None:
    pleg_with(STARTED, DIED).when(
        listed("exited", exit_code=2, reason="Error", started_at=T0 + 900, finished_at=T0 + 950)
    ).then(pleg.ContainerDied(exit_code=2, reason="Error", started_at=T0 + 900, finished_at=T0 + 950, **WHO))


def test_a_death_without_times_is_only_known_by_its_start() -> None:
    dead = pleg.ContainerDied(exit_code=1, reason="Error", started_at=T0, finished_at=0, **WHO)
    pleg_with(dead).when(listed("running", started_at=T0)).then()
    pleg_with(dead).when(listed("running", started_at=T0 + 1)).then(pleg.ContainerStarted(started_at=T0 + 1, **WHO))


def test_a_running_container_found_with_a_later_start_is_a_new_run() -> None:
    scene = pleg_with(STARTED)
    scene.when(listed("running", started_at=T0 + 20)).then()
    scene.when(listed("running", started_at=T0 + 60_000, detailed=False)).then()
    scene.when(listed("running", started_at=T0 + 60_000)).then(pleg.ContainerStarted(started_at=T0 + 60_000, **WHO))


def test_a_listing_that_tells_nothing_new_says_nothing() -> None:
    pleg_with(STARTED).when(listed("running", started_at=T0)).then()
    pleg_with(STARTED).when(signals.Relisted(began_at=T0, count=1)).then()


def test_the_first_listing_and_the_first_after_trouble_say_so() -> None:
    scene = given(DECIDER).when(signals.Relisted(began_at=T0, count=3)).then(pleg.RelistWorking(containers=3))
    scene.when(failed(), at=T0 + 10).then(
        pleg.RelistFailing(error="no socket", last_listed_at=T0, threshold_milliseconds=THRESHOLD)
    )
    scene.when(failed(), at=T0 + 20).then()
    scene.when(signals.Relisted(began_at=T0, count=0)).then(pleg.RelistWorking(containers=0))
    assert scene.due is None


def test_a_listing_that_stays_away_makes_pleg_unhealthy_until_one_works() -> None:
    scene = pleg_with().when(failed(), at=T0 + 10)
    assert scene.due == T0 + THRESHOLD + 1, "a listing as old as the threshold still counts"
    scene.when(Due(at=T0 + THRESHOLD + 1), at=T0 + THRESHOLD + 2000).then(
        pleg.Unhealthy(message="pleg was last seen active 3m2s ago; threshold is 3m0s")
    )
    assert scene.due is None
    scene.when(failed(), at=T0 + THRESHOLD + 3000).then()
    scene.when(signals.Relisted(began_at=T0, count=2)).then(pleg.RelistWorking(containers=2), pleg.Healthy())
    scene.when(signals.Relisted(began_at=T0, count=2)).then()


def test_pleg_is_unhealthy_before_any_listing_worked() -> None:
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


def test_a_pod_that_cannot_be_inspected_is_told_once_and_once_more_when_it_can() -> None:
    unread = signals.Relisted(
        began_at=T0, count=1, unread=(signals.Unread(pod="default/web", uid="u1", error="timed out"),)
    )
    said = pleg.PodUnreadable(pod="default/web", uid="u1", error="timed out")
    scene = pleg_with().when(unread).then(said)
    scene.when(unread).then()
    scene.when(listed("running", started_at=T0)).then(
        STARTED, pleg.PodReadable(pod="default/web", uid="u1", changed=True)
    )
    scene.when(unread).then(said)
    scene.when(listed("running", started_at=T0)).then(pleg.PodReadable(pod="default/web", uid="u1", changed=False))
    assert len(scene.state.unread) == 0


def test_a_part_of_a_listing_says_nothing_of_what_it_does_not_name() -> None:
    other = signals.Unread(pod="default/db", uid="u2", error="timed out")
    one = signals.Unread(pod="default/web", uid="u1", error="timed out")
    scene = pleg_with().when(signals.Relisted(began_at=T0, count=2, unread=(other,)))
    part = signals.Relisted(began_at=T0, count=2, unread=(one,), partial=True)
    scene.when(part).then(pleg.PodUnreadable(pod="default/web", uid="u1", error="timed out"))
    scene.when(signals.Relisted(began_at=T0, count=2, unread=(one, other))).then()

    scene = given(DECIDER).when(signals.Relisted(began_at=T0, count=2, partial=True)).then()
    scene.when(signals.Relisted(began_at=T0, count=2)).then(pleg.RelistWorking(containers=2))


def test_more_than_a_step_may_say_is_left_for_a_listing_that_begins_anew() -> None:
    many = tuple(
        signals.Seen(state="running", started_at=T0, **{**WHO, "id": f"c{number}"}) for number in range(MOST_EVENTS + 2)
    )
    scene = pleg_with()
    before = scene.effects["relist"].intent
    scene.when(signals.Relisted(began_at=T0, count=len(many), seen=many))
    assert scene.only(pleg.EventsPutOff) == pleg.EventsPutOff(count=2)
    assert len(scene.state.containers) == MOST_EVENTS
    assert scene.effects["relist"].intent != before, "the listing begins anew"
    scene.when(signals.Relisted(began_at=T0, count=len(many), seen=many))
    assert scene.kinds == ["ContainerStarted"] * 2


def test_the_stream_is_told_once_each_way() -> None:
    scene = given(DECIDER).when(signals.StreamBroken(error="refused")).then(pleg.StreamLost(error="refused"))
    scene.when(signals.StreamBroken(error="refused")).then()
    scene.when(signals.StreamOpened(server="Docker 24")).then(pleg.StreamFollowed(server="Docker 24"))
    scene.when(signals.StreamBroken(error="end")).then(pleg.StreamLost(error="end"))
    assert scene.state.stream == "lost"


def test_what_vanished_while_it_ran_died_of_nobody_knows_what() -> None:
    scene = pleg_with(STARTED).when(listed("removed"))
    scene.then(
        pleg.ContainerDied(exit_code=137, reason="ContainerStatusUnknown", started_at=T0, finished_at=0, **WHO),
        pleg.ContainerRemoved(**WHO),
    )
    assert len(scene.state.containers) == 0


def test_what_is_gone_is_told_under_the_name_that_the_log_knows() -> None:
    nobody = listed("removed", pod="", uid="", container="", attempt=0)
    pleg_with(STARTED, DIED).when(nobody).then(pleg.ContainerRemoved(**WHO))


ADOPT = pleg.AdoptContainers(request="adopt/r", running=(pleg.RunningContainer(started_at=T0, **WHO),))


def test_what_ran_before_the_log_is_looked_for_and_died_if_it_is_gone() -> None:
    scene = given(DECIDER).when(ADOPT).then(STARTED, pleg.ContainersAdopted(running=1))
    relist = scene.effects["relist"]
    assert isinstance(relist, wanted.Relist)
    assert (relist.known, relist.intent) == (("a0",), "relist/1"), "it begins anew"
    scene.when(listed("removed", pod="", uid="", container="", attempt=0))
    assert scene.only(pleg.ContainerDied).reason == "ContainerStatusUnknown"


def test_what_is_known_already_is_adopted_without_news() -> None:
    pleg_with(STARTED, DIED).when(ADOPT).then(pleg.ContainersAdopted(running=1))
    given(DECIDER).when(pleg.AdoptContainers(request="adopt/r", running=())).then(pleg.ContainersAdopted(running=0))


def test_what_vanished_after_it_died_is_only_removed() -> None:
    pleg_with(STARTED, DIED).when(listed("removed")).then(pleg.ContainerRemoved(**WHO))


def test_what_was_being_removed_when_it_was_looked_at_did_not_die_twice() -> None:
    scene = pleg_with(STARTED, DIED).when(listed("unknown")).then()
    scene.when(listed("removed")).then(pleg.ContainerRemoved(**WHO))


def test_a_container_that_is_only_created_is_told_once() -> None:
    scene = pleg_with().when(listed("created")).then(pleg.ContainerChanged(state="created", **WHO))
    scene.when(listed("created")).then()
    scene.when(listed("running", started_at=T0)).then(STARTED)


def test_an_unknown_state_lowers_nothing_and_the_way_back_is_news() -> None:
    scene = pleg_with(STARTED).when(listed("unknown")).then(pleg.ContainerChanged(state="unknown", **WHO))
    scene.when(listed("unknown")).then()
    scene.when(listed("running", started_at=T0)).then(STARTED)
    scene.when(listed("unknown"))
    scene.when(listed("exited", exit_code=1, finished_at=T0 + 500)).then(DIED)
    scene.when(listed("unknown")).then()
    scene.when(listed("running", started_at=T0)).then()


def test_a_state_that_was_never_known_and_a_creation() -> None:
    scene = pleg_with().when(listed("unknown")).then(pleg.ContainerChanged(state="unknown", **WHO))
    scene.when(listed("created")).then(pleg.ContainerChanged(state="created", **WHO))
    scene.when(listed("removed"))
    assert [type(event).__name__ for event in scene.said] == ["ContainerDied", "ContainerRemoved"]


def test_a_kill_for_want_of_memory_is_the_reason_of_the_death() -> None:
    scene = pleg_with(STARTED).when(notice("oom")).then(pleg.OutOfMemory(**WHO))
    scene.when(notice("oom")).then()
    scene.when(notice("die", T0 + 500, exit_code=137))
    assert scene.only(pleg.ContainerDied).reason == "OOMKilled"
    assert scene.state.out_of_memory == frozenset()


def test_memory_trouble_that_killed_only_a_child_is_no_reason() -> None:
    scene = pleg_with(STARTED).when(notice("oom")).when(notice("die", T0 + 500, exit_code=1))
    assert scene.only(pleg.ContainerDied).reason == "Error"


def test_memory_trouble_of_an_unknown_container_is_not_kept() -> None:
    pleg_with().when(notice("oom")).then()


def test_events_of_others_change_nothing() -> None:
    state = given(DECIDER, STARTED).state
    assert DECIDER.evolve(state, pleg.ContainerRemoved(**{**WHO, "id": "other"})) == state
    assert DECIDER.evolve(state, Event()) == state


def test_a_node_whose_listing_does_not_work_is_told_not_to_be_ready() -> None:
    scene = given(decider("node-1"), WORKS).when(failed(), at=T0 + THRESHOLD + 1_000)
    assert scene.kinds == ["RelistFailing", "Unhealthy"]
    (told,) = scene.recorded
    assert (told.object_kind, told.name, told.severity) == ("Node", "node-1", "Normal")
    scene.tells(("NodeNotReady", "Node node-1 status is now: NodeNotReady"))
    scene.when(signals.Relisted(began_at=T0, count=3))
    scene.tells(("NodeReady", "Node node-1 status is now: NodeReady"))


def test_the_first_listing_of_all_is_what_makes_a_node_ready() -> None:
    scene = given(decider("node-1")).when(signals.Relisted(began_at=T0, count=3))
    scene.tells(("NodeReady", "Node node-1 status is now: NodeReady"))
    scene.when(failed(), at=T0 + 10).when(signals.Relisted(began_at=T0 + 20, count=3)).tells()
    ill = given(decider("node-1")).when(signals.RelistFailed(error="no socket", threshold_milliseconds=THRESHOLD))
    ill.tells(("NodeNotReady", "Node node-1 status is now: NodeNotReady"))
    ill.when(signals.Relisted(began_at=T0, count=3)).tells(("NodeReady", "Node node-1 status is now: NodeReady"))


def test_the_engine_is_recorded_with_its_address() -> None:
    opened = signals.StreamOpened(server="x", endpoint="unix:///a.sock", engine_id="E1")
    scene = given(DECIDER).when(opened)
    scene.then(pleg.StreamFollowed(server="x", endpoint="unix:///a.sock", engine_id="E1"))
    assert (scene.state.endpoint, scene.state.engine_id) == ("unix:///a.sock", "E1")
    scene.when(signals.StreamOpened(server="x"))
    assert (scene.state.endpoint, scene.state.engine_id) == ("unix:///a.sock", "E1"), "an older release says nothing"
    scene.when(replace(opened, endpoint="unix:///b.sock", engine_id=""))
    assert (scene.state.endpoint, scene.state.engine_id) == ("unix:///b.sock", "")


def test_a_start_of_the_agent_and_of_the_machine_is_told() -> None:
    first = signals.StreamOpened(server="x", first=True, boot_id="b1")
    scene = given(decider("node-1")).when(first).tells(("Starting", "Starting chronolet."))
    scene.then(pleg.StreamFollowed(server="x", first=True, boot_id="b1"))
    scene.when(signals.StreamOpened(server="x", boot_id="b1")).tells()
    scene.when(first).tells(("Starting", "Starting chronolet."))
    scene.when(signals.StreamOpened(server="x", first=True)).when(replace(first, boot_id="b2")).tells(
        ("Starting", "Starting chronolet."), ("Rebooted", "Node node-1 has been rebooted, boot id: b2")
    )
    assert [one.severity for one in scene.recorded] == ["Normal", "Warning"]


def test_a_pod_that_cannot_be_inspected_has_an_event() -> None:
    unread = signals.Unread(pod="default/web", uid="u1", error="timed out")
    scene = pleg_with().when(signals.Relisted(began_at=T0, count=1, unread=(unread,)))
    scene.tells(("FailedSync", "error determining status: timed out"))
    (told,) = scene.recorded
    assert (told.object_kind, told.namespace, told.name, told.uid) == ("Pod", "default", "web", "u1")


MESSAGES = st.one_of(
    st.builds(
        notice,
        st.sampled_from(("create", "start", "die", "destroy", "oom")),
        at=st.integers(T0, T0 + 50),
        id=st.sampled_from(("a0", "a1", "a2")),
        exit_code=st.sampled_from((0, 1, 137)),
        started_at=st.sampled_from((0, T0, T0 + 20)),
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
def test_whatever_is_said_the_table_stays_bounded_and_the_same_news_is_told_once(said: list[Any]) -> None:
    scene = given(DECIDER)
    for message in said:
        scene.when(message)
        again = [event for event in DECIDER.decide(scene.state, message, 0) if isinstance(event, pleg.ContainerEvent)]
        assert again == []
    for one in ("a0", "a1", "a2"):
        scene.when(listed("removed", id=one))
    assert (len(scene.state.containers), scene.state.out_of_memory) == (0, frozenset())


def test_the_end_that_docker_noted_before_the_start_is_an_end() -> None:
    died = pleg.ContainerDied(exit_code=0, reason="Completed", started_at=T0 - 8, finished_at=T0 - 24, **WHO)
    pleg_with(STARTED).when(
        listed("exited", exit_code=0, reason="Completed", started_at=T0 - 8, finished_at=T0 - 24, detailed=True)
    ).then(died)


def test_the_end_of_an_earlier_run_is_old_news() -> None:
    earlier = {"started_at": T0 - 9000, "finished_at": T0 - 5000}
    pleg_with(STARTED).when(listed("exited", detailed=True, **earlier)).then()
