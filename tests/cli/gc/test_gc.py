"""`gc plan`, `gc run --dry-run` and `get images`, which read the log and Docker, need no agent and change nothing."""

from __future__ import annotations

import json

import msgspec
import pytest

from chronolet.cli.gc.run import camel_case
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.images import HeldImage
from chronolet.ports.runtime.runtime import SandboxSpec
from chronolet_schemas import container_gc, image_gc
from tests.cli.support.written_node import NODE, NOON, WrittenNode

HOUR = 3_600_000


@pytest.fixture
def collected(node: WrittenNode) -> WrittenNode:
    """A node with three images, one of them in use, and one dead container above the limit."""
    node.images.images = {
        f"sha256:{name * 64}": HeldImage(id=f"sha256:{name * 64}", size_bytes=400_000_000, names=(f"{name}:1",))
        for name in "abc"
    }
    used = image_gc.Image(
        id="sha256:" + "c" * 64, size_bytes=400_000_000, names=("c:1",), users=("db", "web", "x"), user_count=9
    )
    unused = tuple(
        image_gc.Image(id=f"sha256:{name * 64}", size_bytes=400_000_000, names=(f"{name}:1",)) for name in "ab"
    )
    node.write(
        "image_gc/node",
        image_gc.PolicySet(node=NODE, policy=image_gc.Policy()),
        image_gc.ImagesChanged(at=NOON - HOUR, used_until=0, seen=(*unused, used)),
    )
    node.write(
        "container_gc/node",
        container_gc.PolicySet(node=NODE, policy=container_gc.Policy(), log_folder="/no/such/folder"),
        container_gc.PodNoted(pod="default/web", uid="u1"),
        container_gc.SourcesReady(),
    )
    node.runtime.import_image("c:1", b"", ())
    for attempt in range(2):
        owner = labels.Owner(pod="default/web", uid="u1", container="app", attempt=attempt)
        spec = SandboxSpec(name=f"dead{attempt}", labels=labels.written(NODE, owner), image="c:1", hostname="x")
        dead = node.runtime.create_sandbox(spec)
        node.runtime.start(dead)
        node.runtime.end(dead)
    return node


def test_images_are_listed_with_their_ages(collected: WrittenNode) -> None:
    collected.now = NOON
    result = collected.run("get", "images")
    assert result.output == (
        "IMAGE ID       TAGS   SIZE    FIRST DETECTED   LAST USED   USED BY             PINNED\n"
        "aaaaaaaaaaaa   a:1    400MB   60m ago          never       <none>              no\n"
        "bbbbbbbbbbbb   b:1    400MB   60m ago          never       <none>              no\n"
        "cccccccccccc   c:1    400MB   60m ago          now         db,web and 7 more   no\n"
    )
    collected.write(
        "image_gc/node",
        image_gc.ImagesChanged(
            at=NOON,
            used_until=0,
            seen=(image_gc.Image(id="sha256:" + "d" * 64, size_bytes=1, names=("d:1", "d:2", "e:3", "d@sha256:9")),),
        ),
    )
    assert "dddddddddddd   d:1,d:2 and 1 more   1B " in collected.run("get", "image", "ddd").output
    assert collected.run("get", "image", "bbb", "-o", "name").output == "image/sha256:" + "b" * 64 + "\n"
    assert collected.run("get", "image/none").errors == 'Error from server (NotFound): images "none" not found\n'
    assert json.loads(collected.run("get", "images", "-o", "json").output)["items"][2]["usedByCount"] == 9
    assert collected.run("get", "images", "-l", "a=b").status == 2


def test_the_plan_has_a_rule_for_each_removed_and_kept_object(collected: WrittenNode) -> None:
    collected.runtime.calls.clear()
    plan = json.loads(collected.run("gc", "plan", "-o", "json").output)
    assert [(one["name"], one["rule"]) for one in plan["images"]["removed"]] == [("a:1", "space")]
    assert {one["name"]: one["rule"] for one in plan["images"]["kept"]} == {
        "b:1": "enough_freed",
        "c:1": "enough_freed",
    }
    assert [(one["name"], one["rule"]) for one in plan["containers"]["removed"]] == [("dead0", "per_container_limit")]
    assert [(one["name"], one["rule"]) for one in plan["containers"]["kept"]] == [("dead1", "within_limits")]
    assert set(collected.runtime.calls) == {"list", "written_bytes"}
    assert collected.images.removed == []
    result = collected.run("gc", "plan")
    assert result.output.splitlines()[0] == "ACTION   OBJECT      NAME    SIZE    RULE"
    assert "Images: 1 would be removed, freeing 400MB of" in result.output


def test_flags_override_the_policy_of_the_plan(collected: WrittenNode) -> None:
    words = ("gc", "plan", "-o", "json")
    lower = json.loads(collected.run(*words, "--image-gc-high-threshold", "30").output)["images"]
    assert (lower["policy"]["highThresholdPercent"], lower["policy"]["lowThresholdPercent"]) == (30, 25)
    assert len(lower["removed"]) == 3
    pinned = json.loads(collected.run(*words, "--pinned-images", "a").output)["images"]
    assert {one["name"]: one["rule"] for one in pinned["kept"]}["a:1"] == "pinned"
    none = json.loads(collected.run(*words, "--maximum-dead-containers-per-container", "-1").output)["containers"]
    assert none["removed"] == []
    unused = json.loads(collected.run(*words, "--unused-images").output)["images"]
    assert {one["rule"] for one in unused["removed"]} == {"unused"}
    assert (unused["usagePercent"], unused["wantedBytes"]) == (lower["usagePercent"], None)
    text = collected.run("gc", "plan", "--unused-images").output
    assert f"Docker's disk is {unused['usagePercent']} % full (capacity " in text
    assert "image collection starts" not in text
    wrong = collected.run("gc", "plan", "--image-gc-low-threshold", "90")
    assert (wrong.status, wrong.output) == (2, "")
    assert wrong.errors.startswith("error: low threshold: found 90, expected less than the high threshold, 85.")
    assert collected.run("gc", "plan", "--minimum-image-ttl-duration", "x").status == 2


def test_containers_of_a_lost_log_are_planned_separately(collected: WrittenNode) -> None:
    owner = labels.Owner(pod="default/lost", uid="u-lost", container="app", attempt=0, run="another-log")
    spec = SandboxSpec(name="lost0", labels=labels.written(NODE, owner), image="c:1", hostname="x")
    lost = collected.runtime.create_sandbox(spec)
    collected.runtime.start(lost)
    collected.runtime.end(lost)
    plan = json.loads(collected.run("gc", "run", "--left-alone", "--dry-run", "-o", "json").output)
    assert [(one["name"], one["rule"]) for one in plan["containers"]["removed"]] == [("lost0", "left_alone")]
    assert (plan["containers"]["kept"], "images" in plan) == ([], False)
    lines = collected.run("gc", "run", "--left-alone", "--dry-run").output.splitlines()
    assert lines[1].split() == ["remove", "container", "lost0", "0B", "left", "alone"]
    assert lines[2:] == ["Containers: 1 would be removed, freeing 0B."]
    usual = json.loads(collected.run("gc", "run", "--dry-run", "-o", "json").output)
    assert {"name": "lost0", "rule": "left_alone"}.items() <= usual["containers"]["kept"][0].items()
    assert "images" in usual
    wrong = collected.run("gc", "run", "--left-alone", "--unused-images")
    assert wrong.status == 2
    assert wrong.errors.startswith("error: --left-alone removes no images: omit --unused-images.")


def test_fields_of_a_run_have_camel_case_names() -> None:
    finished = image_gc.RunFinished(
        run=1, operation="collect", trigger="request", at=1, usage_percent=3, freed_bytes=4, kept={"in_use": 2}
    )
    found = camel_case(msgspec.to_builtins(finished))
    assert (found["usagePercent"], found["freedBytes"]) == (3, 4)
    assert not [name for name in found if "_" in name]
    assert found["kept"] == {"in_use": 2}, "keys of `kept` are rules, not fields"


def test_a_plan_before_the_first_collection_is_an_error(node: WrittenNode) -> None:
    result = node.run("gc", "plan")
    assert result.status == 1
    assert result.errors.startswith("error: the node's image_gc has not run yet")


def test_a_run_without_an_agent_is_an_error(node: WrittenNode) -> None:
    result = node.run("gc", "run")
    assert result.status == 1
    assert result.errors.startswith("error: no node agent has hosted `image_gc` for 5 s; nothing was sent")
