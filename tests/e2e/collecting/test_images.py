"""Collecting images on a real engine with a small separate disk: in the right order, and never an image that is in use,
pinned or young; the run removes what the plan lists, and a kill in the middle does not change the result.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from chronolet_schemas import container_gc, image_gc, kube_events
from tests.e2e.clock_shim import clock_shim
from tests.e2e.collecting.images import YOUNG_SECONDS, Images, reported_images
from tests.e2e.collecting.runs import gc_plan, ids, killed_job, send_command
from tests.e2e.fault_injection.agent_farm import AgentFarm
from tests.e2e.fault_injection.service_manager import ServiceManager
from tests.e2e.node import Node
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.proxy import DockerProxy
from tests.support.machine.frozen import stopped
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS, wait_until


def test_images_are_removed_in_order_until_enough_is_free(node: Node, small_engine: PrivateDocker) -> None:
    environ, set_ahead = clock_shim(node.root)
    node.environ |= environ
    node.start()
    node.journal.wait_for_event(image_gc.RunFinished)
    images = Images(node)
    images.create("used", "lately", "first", "second", "third", "named-pin")
    images.create("label-pin", labelled={"chronolet/pinned": "true"})
    images.use("used")
    images.release("lately", images.use("lately"))
    images.create("fourth", "fifth")
    set_ahead(YOUNG_SECONDS + 1)
    images.create("young")

    flags = ("--pinned-images", "named-pin")
    plan, calls = gc_plan(node, small_engine, *flags)
    assert calls
    assert {call.partition(" ")[0] for call in calls} == {"GET"}
    assert plan["images"]["usagePercent"] >= 60
    going = [images.name(one) for one in ids(plan["images"]["removed"])]
    # Images that were never used come first, in the order of their age; used images are last.
    assert going == ["first", "second", "third", "fourth", "fifth"][: len(going)]
    rules = {one["id"]: one["rule"] for one in plan["images"]["kept"]}
    assert {name: rules[images.ids[name]] for name in ("used", "named-pin", "label-pin", "young", "lately")} == {
        "used": "in_use",
        "named-pin": "pinned",
        "label-pin": "pinned",
        "young": "young",
        "lately": "enough_freed",
    }
    assert len(going) >= 3

    # Without the flag the image is not pinned, neither in the plan nor in the run.
    plan, _ = gc_plan(node, small_engine)
    ran = node.chronolet("gc", "run", "-o", "json")
    assert ran.status == 0, ran
    run = json.loads(ran.out)
    assert ids(plan["images"]["removed"]) == ids(run["images"]["objects"])
    assert sorted(ids(plan["containers"]["removed"])) == sorted(ids(run["containers"]["objects"]))
    assert images.existing() == set(images.ids) - {images.name(one) for one in ids(run["images"]["objects"])}
    assert {"used", "label-pin", "young", "lately"} <= images.existing()
    assert run["images"]["freedBytes"] >= run["images"]["wantedBytes"]
    node.journal.read()
    after, _ = gc_plan(node, small_engine)
    assert after["images"]["usagePercent"] <= 41  # rounded up, and the engine's log grows
    reported = {event.reason for event in node.journal.events(kube_events.Recorded)}
    assert not reported & {"ImageGCFailed", "FreeDiskSpaceFailed", "ContainerGCFailed"}

    unused = json.loads(node.chronolet("gc", "run", "--unused-images", "-o", "json").out)
    assert {one["reason"] for one in unused["images"]["objects"]} == {"unused"}
    assert images.existing() == {"used", "label-pin", "young"}
    shown = node.chronolet("get", "images").out
    assert "user-of-used" in shown
    check_history(node, images, [images.name(one) for one in ids(run["images"]["objects"])])


def check_history(node: Node, images: Images, for_space: Collection[str]) -> None:
    """Check what `history images` says about images that have been removed, these of them to free space."""
    told = json.loads(node.chronolet("history", "images", "--from", "#1", "-o", "json").out)["images"]
    mine = {images.name(one["id"]): one for one in told if one["id"] in images.ids.values()}
    assert set(mine) == set(images.ids)
    reasons = {name: one["removed"] for name, one in mine.items() if "until" in one}
    assert {name for name, why in reasons.items() if why.startswith("to free space, disk ")} == set(for_space)
    others = set(images.ids) - images.existing() - set(for_space)
    assert {name for name, why in reasons.items() if why.startswith("requested: all unused images")} == others
    [still], [former] = mine["used"]["uses"], mine["lately"]["uses"]
    assert (still["user"], "until" in still) == ("user-of-used", False)
    assert (former["user"], "until" in former) == ("user-of-lately", True)


def test_the_next_agent_finishes_a_run_in_which_an_agent_was_killed(node: Node, proxy: DockerProxy) -> None:
    farm = AgentFarm()
    try:
        job = killed_job(node, "effect/after docker.remove_image image_gc/node run")
        job.flags["docker"] = proxy.host
        agent = farm.start(job)
        node.journal.wait_for_event(image_gc.PolicySet)
        images = Images(node)
        images.create(*(f"image{number}" for number in range(8)))
        before = {image.id for image in reported_images(node)}
        removal = proxy.hang("DELETE .*/images/")
        with node.running_command("gc", "run", "--unused-images", "-o", "json") as running:
            wait_until(lambda: bool(removal.met), "the first removal")
            # A command gives up if no process hosts the node for five seconds, so it is paused until the next agent is
            # running.
            with stopped([running.pid]):
                removal.lift()
                assert agent.ended.wait(HANG_SECONDS)
                assert agent.status == -9
                node.start()
                node.journal.wait_for_event(image_gc.RunFinished, trigger="request")
            out, _ = running.communicate(timeout=HANG_SECONDS)
    finally:
        farm.end()
    run = json.loads(out)["images"]
    assert sorted(ids(run["objects"])) == sorted(images.ids.values())
    node.journal.read()
    removed = [event.id for event in node.journal.events(image_gc.ImageRemoved)]
    assert sorted(removed) == sorted(images.ids.values())
    assert len(node.journal.events(image_gc.RunStarted)) == 1
    assert images.existing() == set()
    # Listing the images again reported no image that the log already contained, so no image's age was reset.
    assert sorted(image.id for image in reported_images(node)) == sorted(before), "an age began again"
    node.journal.wait_for_event(container_gc.RunFinished, trigger="request")


def test_a_kill_of_redis_in_the_middle_of_a_run_over_images_resets_no_age(
    node: Node, redis_server: PrivateRedis
) -> None:
    farm = AgentFarm()
    place = "effect/after docker.remove_image image_gc/node run"
    service_manager = ServiceManager(
        farm, redis_server, killed_job(node, place, target="redis", redis_pid=redis_server.pid)
    )
    try:
        node.journal.wait_for_event(image_gc.PolicySet)
        images = Images(node)
        images.create(*(f"image{number}" for number in range(6)))
        send_command(node, "image_gc", image_gc.CollectImages(request="now", unused=True))
        finished = node.journal.wait_for_event(image_gc.RunFinished, request="now")
    finally:
        service_manager.kill()
        farm.end()
    assert service_manager.killed
    assert (finished.removed, finished.failed) == (6, 0)
    removed = [event.id for event in node.journal.events(image_gc.ImageRemoved)]
    assert sorted(removed) == sorted(images.ids.values())
    assert len(node.journal.events(image_gc.RunStarted)) == 1
    reported = reported_images(node)
    assert len(reported) == len({image.id for image in reported}), "an age began again"
