"""The order of starts and ends in a pod: init containers, sidecars, ephemeral containers."""

import pytest

from tests.corpus.extra.diary import DIARY, DIARY_VOLUME, delete_pod, diary, diary_container
from tests.corpus.extra.pods import AppliedPods, add_pod, script
from tests.e2e.node import shell

pytestmark = pytest.mark.docker

ORDER = add_pod(
    "order",
    diary_container("app"),
    diary_container("second"),
    initContainers=[
        diary_container("first-init", "sleep 0.5"),
        diary_container("sidecar", restartPolicy="Always"),
        diary_container("later-sidecar", restartPolicy="Always"),
        diary_container("last-init", "true"),
    ],
    volumes=DIARY_VOLUME,
)
FAILED_INIT = add_pod(
    "failed-init", script("app", "true"), initContainers=[shell("init", "exit 3")], restartPolicy="Never"
)
RETRIED_INIT = add_pod(
    "retried-init",
    script("app", "true"),
    initContainers=[
        shell("init", "test -e /diary/been && exit 0; touch /diary/been; exit 1", volumeMounts=DIARY),
        diary_container("next", "true"),
    ],
    volumes=DIARY_VOLUME,
)
EPHEMERAL = add_pod("looked-at", script("app", ": marked"))


def test_init_containers_run_in_order_and_sidecars_stay(pods: AppliedPods) -> None:
    begun = ["+first-init", "+sidecar", "+later-sidecar", "+last-init"]
    pods.wait("all to begin", lambda: len(diary(pods, ORDER)) == 6)
    assert diary(pods, ORDER)[:4] == begun
    assert set(diary(pods, ORDER)[4:]) == {"+app", "+second"}
    pods.wait("all to run", lambda: pods.container(ORDER, "second").get("ready"))
    status = pods.pod(ORDER)["status"]
    assert [one["name"] for one in status["initContainerStatuses"]] == [
        "first-init",
        "sidecar",
        "later-sidecar",
        "last-init",
    ]
    assert pods.differences(ORDER) == []


def test_sidecars_end_after_the_containers_in_reverse_order(pods: AppliedPods) -> None:
    pods.wait("all to begin", lambda: len(diary(pods, ORDER)) == 6)
    delete_pod(pods, ORDER)
    ended = diary(pods, ORDER)[6:]
    assert set(ended[:2]) == {"-app", "-second"}
    assert ended[2:] == ["-later-sidecar", "-sidecar"]


def test_an_init_container_that_fails_permanently(pods: AppliedPods) -> None:
    assert pods.ended(FAILED_INIT, "init")["exitCode"] == 3
    pods.wait("its end", lambda: pods.status(FAILED_INIT)["phase"] == "Failed")
    assert "app" not in pods.inspected(FAILED_INIT)


def test_an_init_container_is_retried(pods: AppliedPods) -> None:
    pods.wait("the container after it", lambda: pods.container(RETRIED_INIT, "app").get("ready"))
    assert pods.container(RETRIED_INIT, "init")["restartCount"] == 1
    assert diary(pods, RETRIED_INIT) == ["+next"]


def test_an_ephemeral_container_is_added_to_a_running_pod(pods: AppliedPods) -> None:
    assert pods.output(EPHEMERAL) == ""
    before = pods.inspected(EPHEMERAL)["app"]["State"]
    manifest = pods.manifest(EPHEMERAL)
    debug = script("debug", "hostname; tr '\\0' ' ' < /proc/1/cmdline | grep -o marke[d]", stays=False)
    manifest["spec"]["ephemeralContainers"] = [{**debug, "targetContainerName": "app"}]
    result = pods.node.chronolet("apply", "-f", pods.node.write_unwatched("looked-at.yaml", manifest))
    assert result.status == 0, result
    assert pods.output(EPHEMERAL, "debug") == "looked-at\nmarked\n"
    assert pods.ended(EPHEMERAL, "debug")["exitCode"] == 0
    assert pods.container(EPHEMERAL, "debug")["restartCount"] == 0
    assert pods.inspected(EPHEMERAL)["app"]["State"] == before
