"""What begins and ends in a pod, and in which order: init containers, sidecars, containers put in later."""

import pytest

from tests.corpus.diary import DIARY, DIARY_VOLUME, deleted, diary, writes
from tests.corpus.own import Ran, own, says
from tests.e2e.node import shell

pytestmark = pytest.mark.docker

ORDER = own(
    "order",
    writes("app"),
    writes("second"),
    initContainers=[
        writes("first-init", "sleep 0.5"),
        writes("sidecar", restartPolicy="Always"),
        writes("later-sidecar", restartPolicy="Always"),
        writes("last-init", "true"),
    ],
    volumes=DIARY_VOLUME,
)
FAILED_INIT = own("failed-init", says("app", "true"), initContainers=[shell("init", "exit 3")], restartPolicy="Never")
RETRIED_INIT = own(
    "retried-init",
    says("app", "true"),
    initContainers=[
        shell("init", "test -e /diary/been && exit 0; touch /diary/been; exit 1", volumeMounts=DIARY),
        writes("next", "true"),
    ],
    volumes=DIARY_VOLUME,
)
EPHEMERAL = own("looked-at", says("app", ": marked"))


def test_init_containers_come_one_after_the_other_and_sidecars_stay(ran: Ran) -> None:
    begun = ["+first-init", "+sidecar", "+later-sidecar", "+last-init"]
    ran.wait("all to begin", lambda: len(diary(ran, ORDER)) == 6)
    assert diary(ran, ORDER)[:4] == begun
    assert set(diary(ran, ORDER)[4:]) == {"+app", "+second"}
    ran.wait("all to run", lambda: ran.container(ORDER, "second").get("ready"))
    status = ran.pod(ORDER)["status"]
    assert [one["name"] for one in status["initContainerStatuses"]] == [
        "first-init",
        "sidecar",
        "later-sidecar",
        "last-init",
    ]
    assert ran.differences(ORDER) == []


def test_sidecars_end_after_the_containers_and_in_the_other_order(ran: Ran) -> None:
    ran.wait("all to begin", lambda: len(diary(ran, ORDER)) == 6)
    deleted(ran, ORDER)
    ended = diary(ran, ORDER)[6:]
    assert set(ended[:2]) == {"-app", "-second"}
    assert ended[2:] == ["-later-sidecar", "-sidecar"]


def test_an_init_container_that_fails_for_good(ran: Ran) -> None:
    assert ran.ended(FAILED_INIT, "init")["exitCode"] == 3
    ran.wait("its end", lambda: ran.status(FAILED_INIT)["phase"] == "Failed")
    assert "app" not in ran.inspected(FAILED_INIT)


def test_an_init_container_is_tried_again(ran: Ran) -> None:
    ran.wait("the container after it", lambda: ran.container(RETRIED_INIT, "app").get("ready"))
    assert ran.container(RETRIED_INIT, "init")["restartCount"] == 1
    assert diary(ran, RETRIED_INIT) == ["+next"]


def test_a_container_that_is_put_into_a_running_pod(ran: Ran) -> None:
    assert ran.output(EPHEMERAL) == ""
    before = ran.inspected(EPHEMERAL)["app"]["State"]
    manifest = ran.manifest(EPHEMERAL)
    looks = says("debug", "hostname; tr '\\0' ' ' < /proc/1/cmdline | grep -o marke[d]", stays=False)
    manifest["spec"]["ephemeralContainers"] = [{**looks, "targetContainerName": "app"}]
    said = ran.node.chronolet("apply", "-f", ran.node.write_unwatched("looked-at.yaml", manifest))
    assert said.status == 0, said
    assert ran.output(EPHEMERAL, "debug") == "looked-at\nmarked\n"
    assert ran.ended(EPHEMERAL, "debug")["exitCode"] == 0
    assert ran.container(EPHEMERAL, "debug")["restartCount"] == 0
    assert ran.inspected(EPHEMERAL)["app"]["State"] == before
