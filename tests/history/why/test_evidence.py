"""An answer is never more certain than its evidence: histories in which the obvious answer would be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from chronolet.history.why import causes
from chronolet_schemas import pleg, pod
from chronolet_schemas.prober import ResultChanged
from tests.cli.support.written_node import manifest
from tests.history.why.happenings import FIRST, POD, deleted, hook
from tests.history.why.stories import APP, NOON, SECOND, Story
from tests.history.why.test_endings import LIMITED, sandbox


# -- signals through Docker --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("code", "sent"), [(1, (15,)), (1, (3,)), (0, (15,)), (5, (15, 1))])
def test_a_signal_of_unknown_time_only_may_have_led_to_another_exit_code(code: int, sent: tuple[int, ...]) -> None:
    story = Story().runs().dies(code, sent=sent).restarts(1)
    assert "it may have ended because of that, or for another reason" in story.sentence()
    assert any("program's own log" in line for line in story.answer().settled_by)


@pytest.mark.parametrize(("ago", "certain"), [(200, True), (14_000, True), (3_600_000, False)])
def test_the_time_of_the_last_signal_decides_whether_it_led_to_the_end(ago: int, *, certain: bool) -> None:
    for code in (0, 143):
        sentence = Story().runs().dies(code, sent=(15,), sent_ago=ago).restarts(1).sentence()
        assert ("may have ended because of that" not in sentence) is certain, sentence


@pytest.mark.parametrize("sent", [(19, 18), (20,), (21,), (22,)])
def test_a_signal_that_halts_a_program_does_not_explain_its_exit(sent: tuple[int, ...]) -> None:
    assert Story().runs().dies(1, sent=sent).restarts(1).causes()[0] is causes.ExitedByItself


def test_an_exit_while_nobody_followed_docker_may_be_a_docker_stop() -> None:
    found = Story().runs().dies(0, sent=None).restarts(1).answer()
    assert "by itself, or because it was stopped through Docker (`docker stop`)" in found.sentence
    assert any("docker events" in line for line in found.settled_by)
    assert Story().runs().dies(0).restarts(1).answer().settled_by == ()


def test_a_crash_may_be_the_programs_own_exit_code() -> None:
    found = Story().runs().dies(139).restarts(1).answer()
    assert "exit code 139: it crashed with SIGSEGV, something sent it this signal, or it exited with" in found.sentence
    assert any("core dump" in line for line in found.settled_by)


# -- stops -------------------------------------------------------------------------------------------------------------
def test_a_logged_stop_is_the_cause_even_if_no_signal_was_noticed() -> None:
    story = Story().runs().probe_fails("Liveness", 3).stop("LivenessFailed", grace=30)
    story.now += 5 * SECOND
    story.dies(0, sent=()).restarts(1)
    assert story.causes()[:2] == [causes.ProbeFailed, causes.Stopped]
    assert "it ended before Docker sent any signal" in story.sentence()


def test_a_stop_that_was_requested_after_the_end_did_not_cause_it() -> None:
    story = Story().runs().probe_fails("Liveness", 3).stop("LivenessFailed").dies(3, sent=None, ago=5 * SECOND)
    assert story.restarts(1).causes()[0] is causes.ExitedByItself


@pytest.mark.parametrize(
    ("grace", "killed"), [(2, True), (1, True), (30, False)], ids=["at the deadline", "after it", "before it"]
)
def test_a_kill_before_the_deadline_of_a_stop_was_not_chronolet(grace: int, *, killed: bool) -> None:
    story = Story().runs().probe_fails("Liveness", 3).stop("LivenessFailed", grace=grace)
    story.now += SECOND
    story.dies(137, sent=(15, 9)).restarts(1)
    assert (causes.KilledEarly in story.causes()) is not killed
    assert ("killed it with SIGKILL at its end" in story.sentence()) is killed
    assert ("someone sent it SIGKILL through Docker" in story.sentence()) is not killed


def test_a_container_that_ran_out_of_memory_while_it_was_stopped_was_killed_by_that() -> None:
    story = Story().runs().probe_fails("Liveness", 3).stop("LivenessFailed", grace=30).oom()
    sentence = story.dies(137, sent=(15,), reason="OOMKilled").restarts(1).sentence()
    assert "its liveness probe failed" in sentence
    assert "before the end of its grace period: the kernel killed it for lack of memory" in sentence


def test_who_killed_a_container_that_was_being_stopped_may_be_unknown() -> None:
    story = Story().runs().stop("SpecChanged", grace=30).dies(137, sent=None).restarts(1)
    assert "the log does not show which, nor what killed it" in story.sentence()
    assert any("kernel's log" in line for line in story.answer().settled_by)


def test_the_last_recorded_deadline_counts() -> None:
    story = Story().runs().stop("SpecChanged", grace=30).stop("SpecChanged", grace=1)
    assert causes.KilledEarly not in story.dies(137, sent=(15, 9)).restarts(1).causes()


def test_a_deleted_pod_names_a_kill_before_the_deadline() -> None:
    story = deleted().stop("Deleted", grace=30).dies(137, sent=(15, 9)).has(pod.PodEnded(**POD))
    assert "someone sent it SIGKILL through Docker" in story.sentence()
    assert "did not end within its grace period" not in story.sentence()


def test_an_engine_that_kills_its_containers_when_it_stops_is_named() -> None:
    """The sandbox ends at once, the container ignores SIGTERM; the grace period of 30 s never ends."""
    died, exited = sandbox((15,))
    story = Story().runs().pleg(died).has(exited).stop("SandboxGone", grace=30)
    story.now += 9 * SECOND
    story.dies(137, sent=(15, 9)).engine_lost().engine_back().restarts(1)
    assert story.causes()[:2] == [causes.EngineDown, causes.Stopped]
    assert "killed it with SIGKILL at its end" not in story.sentence()
    assert causes.KilledEarly not in story.causes()
    alone = Story().runs()
    died, exited = sandbox((15,))
    alone.pleg(died).has(exited)
    alone.now += 11 * SECOND
    assert alone.dies(137, sent=(15, 9)).engine_lost().engine_back().restarts(1).causes()[0] is causes.EngineDown


# -- memory ------------------------------------------------------------------------------------------------------------
def test_what_was_read_after_the_death_shows_a_second_oom_kill() -> None:
    story = Story().runs().oom()
    story.now += 60 * SECOND
    story.dies(137, reason="OOMKilled").has(pod.ExitRead(**APP, attempt=0, id="app0", oom_killed=True)).restarts(1)
    assert story.causes()[0] is causes.OutOfMemory


def test_an_old_end_is_explained_with_the_limit_of_that_time() -> None:
    story = Story(containers=LIMITED).runs().oom().dies(137, reason="OOMKilled").waits(0, 0)
    higher = [{"name": "app", "image": "busybox:1", "resources": {"limits": {"memory": "64Mi"}}}]
    sentence = story.accepted(manifest(containers=higher)).runs(1).sentence(nth=1)
    assert "its memory limit is 16Mi" in sentence


def test_an_old_end_is_explained_with_the_restart_policy_of_that_time() -> None:
    story = Story(restartPolicy="OnFailure").runs().dies(3).waits(0, 0)
    assert "restartPolicy OnFailure" in story.accepted(manifest(restartPolicy="Always")).runs(1).sentence(nth=1)


def test_a_limit_that_the_log_lacks_is_unknown() -> None:
    story = Story(containers=LIMITED)
    story.facts.clear()
    story.runs().oom().dies(137, reason="OOMKilled").restarts(1)
    assert "its memory limit is not known" in story.sentence()


# -- missing entries ---------------------------------------------------------------------------------------------------
def test_the_end_of_a_run_that_only_dockers_notice_records_is_explained_with_that() -> None:
    story = Story().runs().dies(137, sent=(9,), recorded=False).restarts(1)
    assert story.causes()[0] is causes.OtherSignal
    assert "; it may have been chronolet, as entries of the log are missing" in story.sentence()


def test_an_end_without_any_entry_accuses_nobody() -> None:
    story = Story().runs().restarts(1)
    assert story.causes() == [causes.EndNotRecorded, causes.Restarted]
    assert "why is not known: its end is not recorded in the log." in story.sentence()
    assert "docker" not in story.sentence().lower()


def test_a_start_that_is_missing_is_still_a_restart() -> None:
    story = Story().runs().dies(1).waits(0)
    story.dies(2, attempt=1).waits(1).runs(2)
    assert "(restart 2, " in story.sentence()
    assert "code 2" in story.sentence()


@pytest.mark.parametrize("sent", [(15, 9), (9,)])
def test_a_signal_is_not_somebody_elses_for_sure_if_entries_are_missing(sent: tuple[int, ...]) -> None:
    found = Story().runs().unread().dies(137, sent=sent).restarts(1).answer()
    assert "it was not chronolet" not in found.sentence
    assert "may have been chronolet" in found.sentence
    assert "the missing entries of the log" in found.settled_by
    before = Story().unread().runs().dies(137, sent=sent).restarts(1)
    assert "it was not chronolet" in before.sentence()


def test_a_signal_after_a_failed_liveness_probe_may_be_chronolets() -> None:
    sentence = Story().runs().probe_fails("Liveness", 3).dies(137, sent=(15, 9)).restarts(1).sentence()
    assert "it was not chronolet" not in sentence


def test_a_liveness_failure_whose_result_is_missing_is_named_from_the_probes_or_the_stop() -> None:
    story = Story().runs().probe_fails("Liveness", 3).stop("LivenessFailed").dies(137, sent=(15, 9)).restarts(1)
    story.facts = [one for one in story.facts if not isinstance(one.event, ResultChanged)]
    assert "its liveness probe failed 3 times in a row" in story.sentence()
    bare = Story().runs().stop("LivenessFailed").dies(137, sent=(15, 9)).restarts(1)
    assert "chronolet stopped it, because its liveness probe failed, with SIGTERM" in bare.sentence()


def test_what_chronolet_did_before_the_log_began_is_not_known() -> None:
    dead = pod.FoundContainer(container="app", attempt=0, id="app0", state="exited", exit_code=137, finished_at=NOON)
    spec: dict[str, Any] = {"source": "apply", "digest": "d", "manifest": manifest(), "accepted_at": NOON}
    adopted = pod.PodAdopted(**POD, **spec, sandbox_hash="s", container_hashes={}, containers=(dead,))
    story = Story()
    story.facts.clear()
    sentence = story.has(adopted).restarts(1).sentence()
    assert "the log may lack a stop by chronolet" in sentence
    assert "chronolet did not stop it" not in sentence


def test_a_healthy_pod_names_what_could_not_be_read() -> None:
    assert Story().runs().unread().causes() == [causes.Running, causes.LogGap]


def test_a_restart_has_no_exact_number_if_the_log_is_not_whole() -> None:
    assert "(restart 1, " in Story().runs().dies(1).restarts(1).sentence()
    assert "(restart 1 of those in the log, " in Story().runs().unread().dies(1).restarts(1).sentence()
    trimmed = Story()
    trimmed.facts.clear()
    assert "(restart 1 of those in the log, " in trimmed.runs(4).dies(1, attempt=4).restarts(5).sentence()


# -- lives, times ------------------------------------------------------------------------------------------------------
def test_a_pod_that_gets_its_former_uid_again_begins_a_new_life() -> None:
    story = deleted().stop("Deleted").dies(0, sent=(15,)).has(pod.PodEnded(**POD)).accepted(manifest()).runs()
    assert story.causes() == [causes.Running]
    assert len(story.history.lives) == 2
    assert story.answer().timeline[0].text.startswith("requested by")
    assert "was deleted" not in story.sentence()


def test_a_changed_spec_does_not_make_an_older_pod_new() -> None:
    story = Story()
    story.facts.clear()
    story.runs().accepted(manifest()).dies(1).restarts(1)
    assert "of those in the log" in story.sentence()


def test_a_clock_that_was_set_back_does_not_change_the_order() -> None:
    story = Story().runs().dies(1).restarts(1)
    story.now -= 3_600 * SECOND
    story.dies(2, attempt=1).restarts(2)
    assert "(restart 2, " in story.sentence()
    assert "code 2" in story.sentence()
    assert "(restart 1, " in story.sentence(nth=1)


@pytest.mark.parametrize(
    ("ago", "near"), [(50, True), (3_000, False)], ids=["shortly before the boot", "long before the boot"]
)
def test_only_an_end_near_the_boot_is_the_reboots(ago: int, *, near: bool) -> None:
    story = Story().engine_back(boot="a").runs().engine_back(boot="b", first=True, after=4_000 * SECOND)
    found = story.dies(137, sent=None, ago=ago * SECOND).restarts(1).answer()
    assert isinstance(found.chain[0], causes.Rebooted)
    assert ("or it exited by itself" not in found.sentence) is near, found.sentence
    assert bool(found.settled_by) is not near


def test_an_end_that_was_noticed_before_a_reboot_is_not_the_reboots() -> None:
    story = Story().engine_back(boot="a").runs().dies(3).engine_back(boot="b", first=True).restarts(1)
    assert story.causes()[0] is causes.ExitedByItself


# -- texts -------------------------------------------------------------------------------------------------------------
def test_long_texts_of_a_pod_are_cut() -> None:
    long = "x" * 5_000
    blocked = Story().has(pod.ContainerBlocked(**FIRST, reason="CreateContainerConfigError", message=long))
    assert len(blocked.sentence()) < 500
    running = hook("PostStart")
    script: Any = type(running.handler.exec)(command=["sh", "-c", long])
    handler = type(running.handler)(exec=script)
    event = pod.HookRequested(**FIRST, id="app0", hook="PostStart", handler=handler, requested_at=NOON)
    assert len(Story().runs().has(event).sentence()) < 500


def test_an_exit_code_is_named_although_another_number_is_the_same() -> None:
    sentence = Story().runs().probe_fails("Liveness", 3).stop("LivenessFailed", grace=3).dies(3, sent=(15,))
    assert "(exit code 3)" in sentence.restarts(1).sentence()


def test_a_sidecar_that_has_ended_waits_for_its_restart() -> None:
    side = [{"name": "proxy", "image": "busybox:1", "restartPolicy": "Always"}]
    story = Story(initContainers=side).runs(container="proxy").runs().dies(6, container="proxy")
    assert "container proxy of default/web waits for its restart" in story.sentence()


def test_a_notice_of_a_death_alone_does_not_end_a_living_run() -> None:
    story = Story().runs()
    times: dict[str, Any] = {"started_at": NOON, "finished_at": NOON}
    story.pleg(pleg.ContainerDied(**FIRST, id="app0", exit_code=1, reason="Error", **times))
    assert story.history.lives[-1].runs[0].exit is None
