"""`chronolet history images`: which images were there when, who used them, why they were removed."""

import json
from typing import Any

import pytest

from chronolet_schemas import image_gc, pod
from chronolet_schemas.envelope import Event
from tests.cli.support.busy_node import IMAGES, MINUTE, busy, image
from tests.cli.support.histories import APP, UID, WEB, accepted
from tests.cli.support.written_node import NODE, NOON, WrittenNode, columns


def images(node: WrittenNode, *words: str) -> list[dict[str, Any]]:
    result = node.run("history", "images", "-o", "json", *words)
    assert (result.status, result.errors) == (0, ""), result
    found: list[dict[str, Any]] = json.loads(result.output)["images"]
    return found


def uses(one: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return user, beginning and end in minutes."""
    ends = [(use["until"] - NOON) // MINUTE if "until" in use else None for use in one["uses"]]
    return [(use["user"], (use["from"] - NOON) // MINUTE, end) for use, end in zip(one["uses"], ends, strict=True)]


def written(*steps: tuple[str, list[Event]]) -> WrittenNode:
    """Return a node to which these events happen, a minute apart."""
    node = WrittenNode()
    node.write(IMAGES, image_gc.PolicySet(node=NODE, policy=image_gc.Policy()))
    for entity, events in steps:
        node.now += MINUTE
        node.write(entity, *events)
    node.now += MINUTE
    return node


def seen(*found: image_gc.Image, gone: tuple[str, ...] = ()) -> tuple[str, list[Event]]:
    return IMAGES, [image_gc.ImagesChanged(at=NOON, used_until=NOON, seen=found, gone=gone)]


def removed(reason: Any, usage: int = 91) -> tuple[str, list[Event]]:
    one: dict[str, Any] = {"id": image("old:1").id, "name": "old:1", "size_bytes": 1, "reason": reason}
    return IMAGES, [
        image_gc.RunStarted(
            run=4,
            operation="collect",
            trigger="period",
            at=NOON,
            capacity_bytes=1,
            usage_percent=usage,
            candidates=(image_gc.Candidate(**one),),
        ),
        image_gc.ImageRemoved(run=4, **one),
    ]


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (removed("space"), "to free space, disk 91 % full (run 4)"),
        (removed("age"), "unused for longer than the maximum age (run 4)"),
        (removed("unused"), "requested: all unused images (run 4)"),
        (seen(gone=(image("old:1").id,)), "removed by another program"),
    ],
)
def test_a_removed_image_says_why(end: Any, why: str) -> None:
    [one] = images(written(seen(image("old:1")), end))
    assert (one["from"], one["until"], one["removed"]) == (NOON, NOON + 2 * MINUTE, why)


def test_an_image_that_could_not_be_removed_says_so() -> None:
    refused = image_gc.ImageNotRemoved(
        run=4, id=image("old:1").id, name="old:1", size_bytes=1, reason="space", error="conflict: in use"
    )
    node = written(seen(image("old:1")), (IMAGES, [refused]))
    assert images(node)[0]["notRemoved"] == [{"at": NOON + 2 * MINUTE, "error": "conflict: in use"}]
    assert columns(node.run("history", "images").output)[2][2:] == [
        "not removed",
        "2027-01-15T08:02:00Z",
        "2027-01-15T08:02:00Z",
        "conflict: in use",
    ]


def run(attempt: int, image_id: str) -> list[Event]:
    about: dict[str, Any] = {**APP, "attempt": attempt}
    return [
        pod.ImageReady(**about, image="app:1", image_id=image_id, pulled=False),
        pod.ContainerStartRequested(**about, sandbox_id="box", spec_hash="", requested_at=NOON),
        pod.ContainerStarted(**about, id=f"c{attempt}", started_at=NOON),
    ]


def exited(attempt: int) -> pod.ContainerExited:
    return pod.ContainerExited(
        **APP, attempt=attempt, id=f"c{attempt}", exit_code=1, reason="Error", started_at=NOON, finished_at=NOON + 1
    )


ENDED = pod.PodEnded(pod="default/web", uid=UID)


def test_a_pod_uses_its_image_from_its_first_start_to_its_end_across_restarts() -> None:
    node = written(
        (WEB, [accepted(), *run(0, image("app:1").id)]),
        (WEB, [exited(0)]),
        (WEB, run(1, image("app:1").id)),
        seen(image("app:1", "default/web/app", "other")),
        (WEB, [ENDED]),
        seen(image("app:1")),
    )
    [one] = images(node)
    assert uses(one) == [("default/web/app", 1, 5), ("other", 4, 6)]
    assert one["names"] == ["app:1"]


def test_a_container_that_gets_another_image_uses_that_one_from_then_on() -> None:
    new = "sha256:new"
    node = written((WEB, [accepted(), *run(0, image("app:1").id)]), (WEB, [exited(0), *run(1, new)]))
    found = {one["id"]: uses(one) for one in images(node)}
    assert found == {image("app:1").id: [("default/web/app", 1, 2)], new: [("default/web/app", 2, None)]}


def test_uses_that_began_before_the_time_begin_with_it() -> None:
    node = written((WEB, [accepted(), *run(0, image("app:1").id)]), seen(image("app:1", "default/web/app")), (WEB, []))
    [one] = images(node, "--from", "-1m")
    assert uses(one) == [("default/web/app", 3, None)]


def test_an_image_that_is_pulled_again_has_two_parts() -> None:
    node = written(seen(image("old:1")), removed("age"), seen(image("old:1")))
    assert [("until" in one) for one in images(node)] == [True, False]


def test_images_are_selected_by_name_or_id() -> None:
    node = busy()
    for name in ("old:1", image("old:1").id, "ooo"):
        assert [one["names"] for one in images(node, name)] == [["old:1"]]
    result = node.run("history", "images", "typo")
    assert (result.status, result.errors) == (1, 'Error from server (NotFound): images "typo" not found\n')


def test_the_table_has_a_row_per_image_and_use() -> None:
    head, *rows = columns(busy().run("history", "images", "app:1", "old:1").output)
    assert head == ["IMAGE", "ID", "WHAT", "FROM", "UNTIL", "WHY"]
    seen_at = "2027-01-15T08:03:30Z"
    assert rows == [
        ["app:1", "a" * 12, "present", seen_at, "<none>", "<none>"],
        ["app:1", "a" * 12, "used by web_app", seen_at, "<none>", "<none>"],
        ["old:1", "o" * 12, "present", seen_at, "2027-01-15T08:05:42Z", "to free space, disk 90 % full (run 1)"],
    ]
