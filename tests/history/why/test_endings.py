"""Why a run ended: each history has one root cause, whatever the exit code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause
from chronolet_schemas import pleg, pod
from tests.cli.support.written_node import manifest
from tests.history.why.stories import APP, NAME, NOON, SECOND, UID, Story

LIMITED = [{"name": "app", "image": "busybox:1", "resources": {"limits": {"memory": "16Mi"}}}]
BOX: dict[str, Any] = {"pod": NAME, "uid": UID, "attempt": 0}


def hook(outcome: pod.HookOutcome, name: pod.HookName = "PostStart", message: str = "") -> pod.HookEnded:
    return pod.HookEnded(**APP, attempt=0, id="app0", hook=name, outcome=outcome, message=message)


def requested(name: pod.HookName) -> pod.HookRequested:
    handler = {"exec": {"command": ("true",)}}
    return msgspec.convert(
        {**APP, "attempt": 0, "id": "app0", "hook": name, "handler": handler, "requested_at": NOON}, pod.HookRequested
    )


def sandbox(sent: tuple[int, ...] | None = ()) -> list[Any]:
    times: dict[str, Any] = {"started_at": NOON, "finished_at": NOON + SECOND}
    died = pleg.ContainerDied(
        **{**APP, "container": "POD"}, attempt=0, id="box", exit_code=137, reason="Error", sent=sent, **times
    )
    return [died, pod.SandboxExited(**BOX, id="box", exit_code=137, finished_at=NOON + SECOND)]


def change() -> Story:
    story = Story().runs()
    other = manifest(containers=[{"name": "app", "image": "busybox:2", "args": ["x"]}])
    return story.accepted(other).stop("SpecChanged").dies(0, sent=(15,))


def probe_kill(probe: Any, reason: pod.StopReason, *, killed: bool) -> Story:
    code, sent = (137, (15, 9)) if killed else (0, (15,))
    return Story().runs().probe_fails(probe, 3).stop(reason).dies(code, sent=sent)


def boxless() -> Story:
    died, exited = sandbox((9,))
    return Story().runs().pleg(died).has(exited).stop("SandboxGone").dies(137, sent=(15, 9))


def engine_killed() -> Story:
    story = Story().runs().engine_lost().engine_back()
    died, exited = sandbox(None)
    return story.pleg(died).has(exited).dies(137, sent=None)


ROOTS: list[tuple[str, Callable[[], Story], type[Cause]]] = [
    ("liveness", lambda: probe_kill("Liveness", "LivenessFailed", killed=True), causes.ProbeFailed),
    ("liveness, ended in time", lambda: probe_kill("Liveness", "LivenessFailed", killed=False), causes.ProbeFailed),
    ("startup", lambda: probe_kill("Startup", "StartupFailed", killed=True), causes.ProbeFailed),
    (
        "postStart",
        lambda: (
            Story()
            .runs()
            .has(requested("PostStart"), hook("Failed"))
            .stop("FailedPostStartHook")
            .dies(137, sent=(15, 9))
        ),
        causes.HookFailed,
    ),
    ("manifest", change, causes.ManifestChanged),
    ("oom", lambda: Story().runs().oom().dies(137, reason="OOMKilled"), causes.OutOfMemory),
    ("oom, seen by an inspect", lambda: Story().runs().dies(137, reason="OOMKilled", sent=None), causes.OutOfMemory),
    (
        "oom, seen in the kernel's log",
        lambda: Story().runs().dies(137).has(pod.ExitRead(**APP, attempt=0, id="app0", oom_killed=True)),
        causes.OutOfMemory,
    ),
    ("docker kill", lambda: Story().runs().dies(137, sent=(9,)), causes.OtherSignal),
    (
        "docker kill after an OOM of a child",
        lambda: Story().runs().oom().dies(137, sent=(9,), reason="OOMKilled"),
        causes.OtherSignal,
    ),
    ("docker stop", lambda: Story().runs().dies(143, sent=(15,)), causes.OtherSignal),
    ("docker stop, handled", lambda: Story().runs().dies(0, sent=(15,)), causes.OtherSignal),
    ("docker stop, not handled", lambda: Story().runs().dies(137, sent=(15, 9)), causes.OtherSignal),
    ("kill -9 on the host", lambda: Story().runs().dies(137), causes.Unexplained),
    ("kill -9, after a reload through Docker", lambda: Story().runs().dies(137, sent=(1,)), causes.Unexplained),
    ("kill, nobody watched", lambda: Story().runs().dies(143, sent=None), causes.Unexplained),
    ("exit 0", lambda: Story().runs().dies(0), causes.ExitedByItself),
    ("exit 1", lambda: Story().runs().dies(1), causes.ExitedByItself),
    ("exit 255", lambda: Story().runs().dies(255), causes.ExitedByItself),
    ("crash", lambda: Story().runs().dies(139), causes.ExitedByItself),
    (
        "died before the stop's signal",
        lambda: Story().runs().probe_fails("Liveness", 3).stop("LivenessFailed").dies(3),
        causes.ExitedByItself,
    ),
    ("removed unseen", lambda: Story().runs().dies(137, reason="ContainerStatusUnknown", sent=None), causes.Gone),
    ("sandbox", boxless, causes.SandboxDied),
    ("engine", engine_killed, causes.EngineDown),
    (
        "reboot",
        lambda: (
            Story()
            .engine_back(boot="a")
            .runs()
            .engine_back(boot="b", first=True, after=60_000)
            .dies(137, sent=None, ago=50_000)
        ),
        causes.Rebooted,
    ),
]


@pytest.mark.parametrize(("what", "story", "root"), ROOTS, ids=[what for what, _, _ in ROOTS])
def test_the_root_cause(what: str, story: Callable[[], Story], root: type[Cause]) -> None:
    found = story().restarts(1).causes()
    assert found[0] is root, what
    assert found[-1] is causes.Restarted
    assert causes.Exited in found


def test_a_child_that_ran_out_of_memory_is_named_before_the_exit_that_it_led_to() -> None:
    story = Story(containers=LIMITED).runs().oom().dies(5).restarts(1)
    assert story.causes()[:2] == [causes.OutOfMemory, causes.ExitedByItself]
    assert "exited by itself with code 5" in story.sentence()
    assert (
        "killed one of its processes, not the main one, for lack of memory (OOM; its memory limit is 16Mi)"
        in story.sentence()
    )


def test_a_kill_for_lack_of_memory_in_another_container_explains_nothing() -> None:
    story = Story().runs().pleg(pleg.OutOfMemory(**{**APP, "container": "side"}, attempt=0, id="side0")).dies(137)
    assert story.restarts(1).causes()[0] is causes.Unexplained


def test_an_oom_kill_long_before_a_sigkill_does_not_explain_it_but_is_named() -> None:
    story = Story().runs().oom()
    story.now += 60_000
    story.dies(137, reason="OOMKilled").restarts(1)
    assert story.causes()[0] is causes.Unexplained
    assert "the log has no other cause" in story.sentence()
    assert (
        "the kernel killed it for lack of memory (it had killed a process of it 62.0 s before; later kills of a run "
        "may not be recorded)"
    ) in story.sentence()
    assert "last OOM" not in story.sentence()


@pytest.mark.parametrize("signal", [1, 10, 12])
def test_a_reload_through_docker_does_not_explain_a_later_exit(signal: int) -> None:
    story = Story().runs().dies(1, sent=(signal,)).restarts(1)
    assert story.causes()[0] is causes.ExitedByItself
    assert Story().runs().dies(128 + signal, sent=(signal,)).restarts(1).causes()[0] is causes.OtherSignal


def test_a_container_that_ended_alone_while_docker_was_down_has_several_explanations() -> None:
    story = Story().runs().engine_lost().engine_back().dies(137, sent=None).restarts(1)
    assert story.causes()[0] is causes.EngineDown
    assert (
        "either a process of the host killed it, or it exited by itself, or the engine's end did it" in story.sentence()
    )
    observed = Story().runs().engine_lost().engine_back().dies(137, sent=()).restarts(1)
    assert observed.causes()[0] is causes.Unexplained


def test_an_engine_that_stops_its_containers_is_not_taken_for_docker_stop() -> None:
    died, exited = sandbox((15,))
    story = Story().runs().pleg(died).has(exited).dies(0, sent=(15,)).engine_lost().engine_back().restarts(1)
    assert story.causes()[0] is causes.EngineDown
    assert "Docker Engine stopped or was killed" in story.sentence()


def test_a_sandbox_that_an_ending_engine_stopped_first_did_not_die_by_itself() -> None:
    died, exited = sandbox((15,))
    story = Story().runs().pleg(died).has(exited).stop("SandboxGone").engine_lost().dies(137, sent=(15, 9))
    found = story.engine_back().restarts(1)
    assert found.causes()[:2] == [causes.EngineDown, causes.Stopped]


def test_the_death_of_an_earlier_sandbox_explains_nothing() -> None:
    died, exited = sandbox()
    story = Story().runs().pleg(died).has(exited).stop("SandboxGone").dies(0, sent=(15,)).restarts(1)
    story.now += 60_000
    assert story.dies(1, attempt=1).restarts(2).causes()[0] is causes.ExitedByItself


def test_an_earlier_outage_of_docker_explains_nothing() -> None:
    story = Story().runs().engine_lost().engine_back().runs(0, "side")
    story.now += 60_000
    assert story.dies(137, sent=None).restarts(1).causes()[0] is causes.Unexplained


@pytest.mark.parametrize(("began", "reason"), [("agent", "agent"), ("engine", "engine"), ("nothing", "log")])
def test_a_death_that_is_recorded_late_says_why(began: str, reason: str) -> None:
    story = Story().runs()
    died_at = story.now
    if began == "engine":
        story.engine_lost()
    story.now = died_at + 30_000
    if began == "agent":
        story.actor = "pleg#2"
        story.engine_back(first=True)
    story.dies(3, ago=story.now + SECOND - died_at)
    late = [one for one in story.restarts(1).answer().chain if isinstance(one, causes.NoticedLate)]
    assert [one.reason for one in late] == [reason]
    assert late[0].milliseconds >= 30_000


def test_an_agent_that_is_restarted_after_a_late_death_has_not_delayed_it() -> None:
    story = Story().engine_back(first=True).runs()
    died_at = story.now
    story.now += 30_000
    story.dies(3, ago=story.now + SECOND - died_at).restarts(1)
    story.actor = "pleg#2"
    late = [one.reason for one in story.engine_back(first=True).answer().chain if isinstance(one, causes.NoticedLate)]
    assert late == ["log"]


def test_the_signals_of_docker_are_not_known_if_a_listing_found_the_death() -> None:
    watched, unwatched = (Story().runs().dies(137, sent=sent).restarts(1).answer() for sent in ((), None))
    assert "docker kill" not in watched.sentence
    assert "docker kill" in unwatched.sentence
    assert (len(watched.settled_by), len(unwatched.settled_by)) == (1, 2)


def test_a_changed_manifest_is_named_with_its_fields() -> None:
    sentence = change().restarts(1).sentence()
    assert "its manifest was changed by the manifest file /pods/web.yaml" in sentence
    assert "(args; image: busybox:1 -> busybox:2)" in sentence


@pytest.mark.parametrize(
    ("sent", "removed", "again", "words"),
    [
        ((9,), False, False, "SIGKILL through Docker, as `docker kill` does"),
        ((9,), True, False, "SIGKILL through Docker and removed it, as `docker rm -f` does"),
        ((15,), False, False, "SIGTERM through Docker, as `docker stop` does"),
        ((15, 9), False, False, "SIGTERM and then SIGKILL through Docker, as `docker stop` does"),
        ((15,), False, True, "SIGTERM through Docker and started it again, as `docker restart` does"),
        ((2,), False, False, "SIGINT through Docker, as `docker kill --signal` does"),
        ((34,), False, False, "signal 34 through Docker"),
    ],
)
def test_the_command_that_sends_such_signals_is_named(
    sent: tuple[int, ...], *, removed: bool, again: bool, words: str
) -> None:
    story = Story().runs().dies(137 if 9 in sent else 0, sent=sent)
    if removed:
        story.pleg(pleg.ContainerRemoved(**APP, attempt=0, id="app0"))
    if again:
        story.has(pod.StrayFound(**APP, attempt=0, id="app0"))
    assert words in story.restarts(1).sentence()


def test_the_second_death_of_a_container_that_docker_started_again_does_not_count() -> None:
    story = Story().runs().dies(0, sent=(15,)).waits(0, 0)
    named: dict[str, Any] = {**APP, "attempt": 0, "id": "app0"}
    story.pleg(pleg.ContainerStarted(started_at=story.now, **named)).has(pod.StrayFound(**named)).dies(137, sent=(9,))
    assert "SIGTERM through Docker and started it again" in story.runs(1).sentence()


def test_a_container_that_docker_starts_again_at_once_was_restarted_by_it() -> None:
    story = Story().runs().dies(0, sent=(15,))
    started = pleg.ContainerStarted(**APP, attempt=0, id="app0", started_at=NOON + SECOND)
    assert "started it again, as `docker restart` does" in story.pleg(started).restarts(1).sentence()


def test_a_container_that_container_collection_removes_was_not_removed_by_someone() -> None:
    story = Story().runs().dies(137, sent=(9,)).collected().pleg(pleg.ContainerRemoved(**APP, attempt=0, id="app0"))
    assert "rm -f" not in story.restarts(1).sentence()


def test_the_chain_has_the_back_off_the_next_start_and_the_removal() -> None:
    story = Story().runs().dies(1).restarts(1).dies(1, attempt=1).restarts(2, back_off=10).collected(1)
    assert story.causes(nth=2) == [
        causes.ExitedByItself,
        causes.Exited,
        causes.BackOff,
        causes.Restarted,
        causes.Collected,
    ]
