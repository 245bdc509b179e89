"""Why a pod is in its present state: what is asked about without a number, and what the first sentence says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chronolet.history.why import causes
from chronolet.history.why.answer import WhyError
from chronolet.history.why.causes import Cause
from chronolet_schemas import manifests, pod
from tests.cli.support.written_node import manifest
from tests.history.why.happenings import (
    FIRST,
    INIT,
    LOST,
    POD,
    PROBED,
    adopted,
    awaited,
    collected_image,
    ends,
    hook,
    hook_ended,
    image_failed,
    image_ready,
    listed,
    waits_for_port,
    with_gpu,
)
from tests.history.why.states import STATES
from tests.history.why.stories import APP, NAME, NOON, Story


@pytest.mark.parametrize(("what", "story", "chain", "words"), STATES, ids=[what for what, *_ in STATES])
def test_the_state_of_a_pod(
    what: str, story: Callable[[], Story], chain: list[type[Cause]], words: tuple[str, ...]
) -> None:
    found = story().answer()
    assert [type(one) for one in found.chain] == chain, what
    assert found.about == "state"
    assert [one for one in words if one not in found.sentence] == [], found.sentence
    assert found.sentence.endswith(".")
    assert not found.sentence.endswith("..")


OVER: list[tuple[str, Callable[[], Story]]] = [
    ("a port is free", lambda: waits_for_port().has(pod.CgroupGranted(**POD)).runs()),
    ("an image was pulled", lambda: Story().has(image_failed(), image_ready(pulled=True)).runs()),
    (
        "a changed spec starts",
        lambda: Story().has(pod.ContainerBlocked(**FIRST, reason="x", message="y")).accepted(manifest()).runs(),
    ),
    ("a hook has ended", lambda: Story().runs().has(hook("PostStart"), hook_ended("PostStart", "Succeeded"))),
    (
        "a device has recovered",
        lambda: with_gpu().add("devices/node", listed(("gpu-0", "Unhealthy")), listed(("gpu-0", "Healthy"))),
    ),
    ("another device is unhealthy", lambda: with_gpu().add("devices/node", listed(("gpu-1", "Unhealthy")))),
    ("devices were granted", lambda: Story().has(*awaited(), pod.DevicesGranted(**APP, devices={})).runs()),
    (
        "the start succeeded after all",
        lambda: (
            Story()
            .has(pod.ContainerStartFailed(**FIRST, reason="x", message="y", failed_at=NOON, retry_at=NOON))
            .runs()
        ),
    ),
]


@pytest.mark.parametrize(("what", "story"), OVER, ids=[what for what, _ in OVER])
def test_what_is_over_is_not_the_answer(what: str, story: Callable[[], Story]) -> None:
    assert story().causes() == [causes.Running], what


# -- which question is answered ----------------------------------------------------------------------------------------
def test_a_healthy_pod_that_restarted_is_asked_about_its_last_restart() -> None:
    story = Story().runs().dies(1).restarts(1).dies(137, attempt=1, sent=(9,)).restarts(2)
    found = story.answer()
    assert (found.about, found.restart) == ("restart", 2)
    assert "docker kill" in found.sentence


def test_a_container_that_is_not_ready_since_its_restart_is_asked_about_the_restart() -> None:
    story = Story(containers=PROBED).runs().dies(1).restarts(1)
    assert story.answer().about == "restart"
    assert story.probe_fails("Readiness", 3, attempt=1).answer().about == "state"


def test_the_restart_up_to_a_moment_is_explained_even_if_the_pod_has_failed_since() -> None:
    story = Story().runs().dies(1).restarts(1).has(pod.PodFailed(**POD, reason="DeadlineExceeded", message="x"))
    assert story.answer().about == "state"
    assert story.answer(restart=True).about == "restart"
    assert Story().runs().answer(restart=True).about == "state"


def test_restarts_are_counted_per_container_or_over_all() -> None:
    story = Story(containers=[{"name": one, "image": "b:1"} for one in ("app", "side")])
    story.runs().runs(container="side").dies(1).restarts(1).dies(2, container="side").restarts(1, container="side")
    assert "container side" in story.sentence()
    assert "container app" in story.sentence(container="app")
    assert "container side" in story.sentence(container="side", nth=1)
    with pytest.raises(WhyError, match="found --nth 1 without a container, expected -c with one of app, side"):
        story.answer(nth=1)


def test_an_init_container_that_succeeded_and_runs_again_has_not_restarted() -> None:
    story = Story(initContainers=INIT).runs(container="init").dies(0, container="init").runs()
    story.runs(1, container="init")
    assert story.history.lives[-1].restarts() == []


def test_a_pod_of_the_same_name_begins_a_new_count() -> None:
    story = Story().runs().dies(1).restarts(1).has(pod.PodEnded(**POD)).accepted(manifest(), uid="u2")
    assert story.answer().uid == "u2"
    assert story.history.lives[0].restarts() != []
    assert story.history.lives[-1].restarts() == []


def test_a_pod_that_replaced_another_one_says_what_changed() -> None:
    story = Story().runs().has(ends(), pod.SuccessorAwaits(**POD, successor="u2"), pod.PodEnded(**POD))
    changed = manifest(containers=[{"name": "app", "image": "busybox:2"}], hostNetwork=True)
    story.accepted(changed, uid="u2")
    story.has(pod.ContainerStarted(**{**FIRST, "uid": "u2"}, id="x", started_at=story.now))
    assert story.causes() == [causes.ManifestChanged, causes.Running]
    assert "replaced an earlier pod of its name because its manifest was changed" in story.sentence()
    assert "(app.image: busybox:1 -> busybox:2; hostNetwork)" in story.sentence()


def test_a_pod_whose_first_entries_are_missing_is_explained_from_the_rest() -> None:
    story = Story()
    story.facts.clear()
    story.runs().dies(137, sent=(9,)).restarts(1)
    assert "docker kill" in story.sentence()
    story = Story().runs()
    del story.facts[:2]
    assert "was running when this log began" in story.sentence()


def test_a_pulled_image_that_the_node_had_before_is_named() -> None:
    story = Story().has(image_ready(pulled=True)).runs().dies(1)
    story.add("image_gc/node", collected_image("age")).has(image_ready(pulled=True)).restarts(1)
    sentence = story.sentence()
    assert "exited by itself with code 1" in sentence
    assert "image collection removed it: it was unused for too long; image busybox:1 had to be pulled again" in sentence


def test_an_adopted_pod_says_that_the_log_began_later() -> None:
    story = Story()
    story.facts.clear()
    assert "was running when this log began" in story.has(adopted(2)).sentence()
    assert story.dies(1, attempt=2).restarts(3).causes()[0] is causes.ExitedByItself


def test_a_log_that_lost_entries_says_so() -> None:
    story = Story()
    story.facts.clear()
    story.add("node/n", LOST).runs()
    assert "was running when this log began; Redis lost 5 entries of the log" in story.sentence()


def test_a_full_disk_is_named() -> None:
    failed = pod.SandboxStartFailed(**POD, attempt=0, message="mkdir: no space left on device", retry_at=NOON)
    assert Story().has(failed).causes() == [causes.SandboxFailed, causes.DiskFull]
    assert Story().has(failed).sentence().endswith("; a disk of the node is full.")


def test_an_image_that_the_pod_before_it_used_was_pulled_again() -> None:
    story = Story().has(image_ready(pulled=True)).runs().has(pod.PodEnded(**POD))
    story.add("image_gc/node", collected_image("unused")).accepted(manifest(), uid="u2")
    ready = pod.ImageReady(**{**FIRST, "uid": "u2"}, image="busybox:1", image_id="sha256:1", pulled=True)
    started = pod.ContainerStarted(**{**FIRST, "uid": "u2"}, id="x", started_at=NOON)
    sentence = story.has(ready, started).sentence()
    assert "image collection removed it: on request; image busybox:1 had to be pulled again" in sentence


def test_a_pull_that_the_policy_demands_is_not_a_pull_again() -> None:
    story = Story(containers=[{"name": "app", "image": "busybox:1", "imagePullPolicy": "Always"}])
    story.has(image_ready(pulled=True)).runs().dies(1).has(image_ready(pulled=True)).restarts(1)
    assert "pulled again" not in story.sentence()


def test_a_refused_request_is_the_answer_for_a_pod_that_was_never_accepted() -> None:
    story = Story()
    story.facts.clear()
    story.add("manifests/node", manifests.PodRefused(pod=NAME, source="apply", reason="another source owns the name"))
    assert "was rejected by the node: PodRefused: another source owns the name" in story.sentence()
