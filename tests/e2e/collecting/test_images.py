"""Collecting on a real engine with a disk of its own: the right images in the right order, nothing that is in use,
pinned, young or anybody else's; the plan before is the run after; a kill in the middle changes nothing.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker.errors
import pytest

from chronolet.kernel.storage.store import StoreUnreachable
from chronolet.ports.runtime import labels
from chronolet_schemas import codec, container_gc, image_gc, kube_events, registry
from chronolet_schemas import pod as pods
from chronolet_schemas.envelope import Command
from chronolet_schemas.keys import Shard
from tests.e2e.fault_injection.agent_farm import AgentJob, Farm
from tests.e2e.fault_injection.faults import Victim
from tests.e2e.fault_injection.points import Point
from tests.e2e.fault_injection.service_manager import Keeping
from tests.e2e.node import BUSYBOX, Node, pod, shell
from tests.support.docker import PrivateDocker, private_docker
from tests.support.docker_proxy import DockerProxy, docker_proxy
from tests.support.frozen import stopped
from tests.support.images import PAUSE, small_image
from tests.support.redis import PrivateRedis
from tests.support.scratch import HANG_SECONDS, wait_until

DISK_MEGABYTES = 320
MEGABYTES = 20
YOUNG_SECONDS = 600
NEVER = "1h"
_SHIM = Path(__file__).parents[2] / "support" / "shifted_clock.c"


@pytest.fixture(scope="module")
def small_engine() -> Iterator[PrivateDocker]:
    """An engine whose data lie on a disk that is soon full."""
    with private_docker(disk_megabytes=DISK_MEGABYTES) as engine:
        yield engine


@pytest.fixture
def node(small_engine: PrivateDocker, redis_server: PrivateRedis) -> Iterator[Node]:
    """A node that collects only when it is told to."""
    found = Node(small_engine, redis_server.url, redis_server.folder.name, redis_server.folder / "agent")
    found.environ |= {
        "CHRONOLET_CONTAINER_GC_PERIOD": NEVER,
        "CHRONOLET_IMAGE_GC_PERIOD": NEVER,
        "CHRONOLET_IMAGE_USAGE_PERIOD": "100ms",
        "CHRONOLET_IMAGE_GC_HIGH_THRESHOLD": "60",
        "CHRONOLET_IMAGE_GC_LOW_THRESHOLD": "40",
        "CHRONOLET_MINIMUM_IMAGE_TTL_DURATION": f"{YOUNG_SECONDS}s",
    }
    try:
        yield found
    finally:
        found.close()
        small_engine.remove_containers()
        for one in found.engine.api().images():
            if set(one["RepoTags"] or ()) <= {BUSYBOX, PAUSE.reference} and one["RepoTags"]:
                continue
            found.engine.api().remove_image(one["Id"], force=True)


@pytest.fixture
def proxy(small_engine: PrivateDocker) -> Iterator[DockerProxy]:
    """In front of that engine."""
    with docker_proxy(small_engine.host) as found:
        yield found


def shifted(node: Node) -> Callable[[int], None]:
    """How to set the clock of the agent and of commands so many seconds ahead, from before the agent's start on."""
    library, clock = node.root / "shifted_clock.so", node.root / "clock"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, _SHIM], check=True, timeout=HANG_SECONDS)
    clock.write_bytes(bytes(8))
    node.environ |= {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(clock)}

    def ahead(seconds: int) -> None:
        with clock.open("r+b") as file:
            file.write(struct.pack("q", seconds))

    return ahead


class Images:
    """What a test makes, by a name of its own."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.ids: dict[str, str] = {}

    def make(self, *names: str, labelled: Mapping[str, str] | None = None) -> None:
        """One after the other: each is known before the next."""
        for name in names:
            self.ids[name] = small_image(self._node.docker, [f"{name}:1"], labelled, MEGABYTES)
            self._wait_for(self.ids[name])

    def _wait_for(self, image_id: str) -> None:
        self._node.journal.wait_for(f"{image_id} in the log", lambda: image_id in self._seen())

    def _seen(self) -> set[str]:
        return {image.id for image in told_with_names(self._node)}

    def use(self, name: str) -> str:
        """By a dead container that is nobody's pod."""
        made = self._node.docker.create_container(self.ids[name], ["/blob"], name=f"user-of-{name}")["Id"]
        self._node.journal.wait_for(f"the use of {name}", lambda: self._in_use(name))
        return str(made)

    def use_no_more(self, name: str, container: str) -> None:
        self._node.docker.remove_container(container)
        self._node.journal.wait_for(f"the end of the use of {name}", lambda: not self._in_use(name))

    def _in_use(self, name: str) -> bool:
        changes = self._node.journal.events(image_gc.ImagesChanged)
        told = [image for event in changes for image in event.seen if image.id == self.ids[name]]
        return bool(told[-1].users)

    def name(self, image_id: str) -> str:
        return next(name for name, known in self.ids.items() if known == image_id)

    def there(self) -> set[str]:
        found = {one["Id"] for one in self._node.docker.images()}
        return {name for name, known in self.ids.items() if known in found}


def planned(node: Node, small_engine: PrivateDocker, *words: str) -> tuple[dict[str, Any], list[str]]:
    """What `gc plan` says, once both collectors have one, and all calls that it made to the engine."""
    node.journal.wait_for_event(image_gc.PolicySet)
    node.journal.wait_for_event(container_gc.PolicySet)
    proxy = DockerProxy(small_engine.host, node.root / "plan.sock")
    try:
        said = node.chronolet(
            "--redis", node.environ["CHRONOLET_REDIS"], "gc", "plan", "--docker", proxy.host, "-o", "json", *words
        )
    finally:
        proxy.close()
    assert said.status == 0, said
    plan: dict[str, Any] = json.loads(said.out)
    return plan, proxy.calls


def ids(objects: Sequence[Mapping[str, Any]]) -> list[str]:
    return [one["id"] for one in objects]


def test_images_go_in_their_order_until_enough_is_free(node: Node, small_engine: PrivateDocker) -> None:
    set_ahead = shifted(node)
    node.start()
    node.journal.wait_for_event(image_gc.RunFinished)
    images = Images(node)
    images.make("used", "lately", "first", "second", "third", "named-pin")
    images.make("label-pin", labelled={"chronolet/pinned": "true"})
    images.use("used")
    images.use_no_more("lately", images.use("lately"))
    images.make("fourth", "fifth")
    set_ahead(YOUNG_SECONDS + 1)
    images.make("young")

    flags = ("--pinned-images", "named-pin")
    plan, calls = planned(node, small_engine, *flags)
    assert calls
    assert {call.partition(" ")[0] for call in calls} == {"GET"}
    assert plan["images"]["usagePercent"] >= 60
    going = [images.name(one) for one in ids(plan["images"]["removed"])]
    # By age where nothing was ever used; what was used is the last to go.
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

    # Without the pattern the pinned one is like any other, in the plan and in the run.
    plan, _ = planned(node, small_engine)
    ran = node.chronolet("gc", "run", "-o", "json")
    assert ran.status == 0, ran
    run = json.loads(ran.out)
    assert ids(plan["images"]["removed"]) == ids(run["images"]["objects"])
    assert sorted(ids(plan["containers"]["removed"])) == sorted(ids(run["containers"]["objects"]))
    assert images.there() == set(images.ids) - {images.name(one) for one in ids(run["images"]["objects"])}
    assert {"used", "label-pin", "young", "lately"} <= images.there()
    assert run["images"]["freedBytes"] >= run["images"]["wantedBytes"]
    node.journal.read()
    after, _ = planned(node, small_engine)
    assert after["images"]["usagePercent"] <= 41  # rounded up, and the log of the engine grows
    told = {event.reason for event in node.journal.events(kube_events.Recorded)}
    assert not told & {"ImageGCFailed", "FreeDiskSpaceFailed", "ContainerGCFailed"}

    unused = json.loads(node.chronolet("gc", "run", "--unused-images", "-o", "json").out)
    assert {one["reason"] for one in unused["images"]["objects"]} == {"unused"}
    assert images.there() == {"used", "label-pin", "young"}
    shown = node.chronolet("get", "images").out
    assert "user-of-used" in shown


CRASHES_TWICE = (
    "echo run >> /runs/of-app; echo $HOSTNAME; [ $(wc -l < /runs/of-app) -gt 2 ] || exit 3; "
    "trap 'exit 0' TERM; sleep 3600 & wait"
)


def dead_containers(node: Node, name: str) -> list[str]:
    chosen = {"label": [f"{labels.NODE}={node.name}", f"{labels.CONTAINER_NAME}={name}"], "status": "exited"}
    return [one["Id"] for one in node.docker.containers(all=True, filters=chosen)]


def test_dead_containers_and_left_over_logs_go_and_nothing_else(node: Node, small_engine: PrivateDocker) -> None:
    app = shell("app", CRASHES_TWICE, volumeMounts=[{"name": "runs", "mountPath": "/runs"}])
    node.write("crash.yaml", pod("crash", app, shell("good"), volumes=[{"name": "runs", "emptyDir": {}}]))
    node.start()
    # It looks once when it begins; what comes later is for the run that is asked for.
    node.journal.wait_for_event(container_gc.RunFinished)
    foreign = node.docker.create_container(BUSYBOX, ["true"], name="foreign")["Id"]
    odd = node.docker.create_container(BUSYBOX, ["true"], name="odd", labels={labels.NODE: node.name})["Id"]
    run_to_the_end(node, foreign, odd)
    logs = node.root / "logs"
    (logs / "pods" / "default_gone_u9").mkdir(parents=True)
    os.utime(logs / "pods" / "default_gone_u9", (0, 0))  # so long ago that no news of its pod can be on its way
    (logs / "containers" / "gone_default_app-k9.log").symlink_to(logs / "pods" / "default_gone_u9" / "0.log")
    node.journal.wait_for_event(pods.ContainerStarted, pod="default/crash", container="app", attempt=2)
    assert len(dead_containers(node, "app")) == 2
    (own,) = (logs / "pods").glob("default_crash_*")
    assert {one.name for one in (own / "app").iterdir()} == {"0.log", "1.log", "2.log"}

    plan, calls = planned(node, small_engine)
    assert {call.partition(" ")[0] for call in calls} == {"GET"}
    ran = node.chronolet("gc", "run", "-o", "json")
    assert ran.status == 0, ran
    done = json.loads(ran.out)["containers"]
    assert sorted(ids(plan["containers"]["removed"])) == sorted(ids(done["objects"]))  # they go several at a time
    assert {one["rule"] for one in done["objects"]} == {
        "per_container_limit",
        "unidentified",
        "deleted_pod",
        "dangling",
    }
    (kept,) = dead_containers(node, "app")
    assert node.docker.inspect_container(foreign)["State"]["Status"] == "exited"
    assert node.running("crash").keys() == {"POD", "app", "good"}
    assert list((logs / "pods").iterdir()) == [own]
    # Of the dead one that is kept the log is found by its place, of the one that went not even a link is left.
    (link,) = (one for one in (logs / "containers").glob("crash_default_app-*") if one.stem.endswith(kept))
    assert link.readlink() == own / "app" / "1.log"
    assert json.loads(link.read_text())["log"] == "crash\n"
    assert not (own / "app" / "0.log").is_symlink()
    assert all(one.exists() for one in (logs / "containers").iterdir())
    assert node.chronolet("logs", "crash", "-c", "app", "-p").out == "crash\n"
    again = json.loads(node.chronolet("gc", "run", "-o", "json").out)["containers"]
    assert again["objects"] == []
    (node.folder / "crash.yaml").unlink()
    node.journal.wait_for_event(pods.PodEnded, pod="default/crash")
    assert list((logs / "pods").iterdir()) == list((logs / "containers").iterdir()) == []


def struck_job(node: Node, place: str, nth: int = 3, **more: Any) -> AgentJob:
    """An agent that takes every image at once, and meets its blow after the third removal of a run."""
    node.environ["CHRONOLET_MINIMUM_IMAGE_TTL_DURATION"] = "0s"
    job = node.job(point=Point(place=place, nth=nth), **more)
    flags = {name.removeprefix("CHRONOLET_").lower(): value for name, value in node.environ.items() if "_GC_" in name}
    flags |= {"image_usage_period": "100ms", "minimum_image_ttl_duration": "0s", "pinned_images": "chronolet/*"}
    job.flags.update(flags)
    return job


def test_a_run_that_is_killed_in_its_middle_is_finished_by_the_next_agent(node: Node, proxy: DockerProxy) -> None:
    farm = Farm()
    try:
        job = struck_job(node, "effect/after docker.remove_image image_gc/node run")
        job.flags["docker"] = proxy.host
        agent = farm.start(job)
        node.journal.wait_for_event(image_gc.PolicySet)
        images = Images(node)
        images.make(*(f"image{number}" for number in range(8)))
        before = {image.id for image in told_with_names(node)}
        removal = proxy.hang("DELETE .*/images/")
        with node.started("gc", "run", "--unused-images", "-o", "json") as running:
            wait_until(lambda: bool(removal.met), "the first removal")
            # A command gives a node up that nobody has hosted for five seconds. This one finds the next agent there.
            with stopped([running.pid]):
                removal.lift()
                assert agent.over.wait(HANG_SECONDS)
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
    assert images.there() == set()
    # Whoever looked anew was told nothing that the log had not known: no age began again.
    assert sorted(image.id for image in told_with_names(node)) == sorted(before), "an age began again"
    node.journal.wait_for_event(container_gc.RunFinished, trigger="request")


def told_with_names(node: Node) -> list[image_gc.Image]:
    """What was told of images. One that is looked at before it has its name is told again with it: that counts here."""
    return [image for event in node.journal.events(image_gc.ImagesChanged) for image in event.seen if image.names]


def told_to(node: Node, kind: str, command: Command) -> None:
    """As `gc run` tells it, by somebody who does not wait."""
    name, data = registry.type_of(type(command)), codec.encode(command)

    def sent() -> bool:
        with suppress(StoreUnreachable):  # nobody knows whether it came; the same request is taken once
            node.journal.store.send(Shard(kind), name, f"{kind}/node", command.request, data)
            return True
        return False

    wait_until(sent, f"{kind} to be sent {name}")


def of_nobody(node: Node, count: int) -> set[str]:
    """Dead containers of this node that do not say whose they are: a run takes them all."""
    made = [
        node.docker.create_container(BUSYBOX, ["true"], labels={labels.NODE: node.name})["Id"] for _ in range(count)
    ]
    run_to_the_end(node, *made)
    return set(made)


def run_to_the_end(node: Node, *made: str) -> None:
    """Until the engine lists them as dead: it tells whoever waits for an end a moment before."""
    for one in made:
        node.docker.start(one)
        node.docker.wait(one)

    def dead() -> set[str]:
        return {one["Id"] for one in node.docker.containers(all=True, filters={"status": "exited"})}

    wait_until(lambda: dead() >= set(made), "their ends, by Docker's list")


@pytest.mark.parametrize("victim", ["agent", "redis"])
def test_a_blow_in_the_middle_of_a_run_over_containers_changes_nothing(
    node: Node, redis_server: PrivateRedis, victim: Victim
) -> None:
    farm = Farm()
    place = "effect/after docker.remove container_gc/node remove/2"
    keeping = Keeping(farm, redis_server, struck_job(node, place, 1, victim=victim, redis_pid=redis_server.pid))
    try:
        node.journal.wait_for_event(container_gc.RunFinished)
        made = of_nobody(node, 8)
        told_to(node, "container_gc", container_gc.CollectContainers(request="now"))
        finished = node.journal.wait_for_event(container_gc.RunFinished, request="now")
    finally:
        keeping.abandon()
        farm.end()
    assert keeping.struck
    assert keeping.deaths == ([-9] if victim == "agent" else [])
    assert (finished.removed, finished.failed, finished.error) == (8, 0, "")
    removed = [event.id for event in node.journal.events(container_gc.Removed)]
    assert (len(removed), set(removed)) == (8, made)
    assert len(node.journal.events(container_gc.RunStarted)) == 1
    assert len(node.journal.events(container_gc.RunRequested)) == 1
    assert dead_of(node) == set()


def dead_of(node: Node) -> set[str]:
    """What this node has of dead containers."""
    chosen = {"label": f"{labels.NODE}={node.name}", "status": "exited"}
    return {one["Id"] for one in node.docker.containers(all=True, filters=chosen)}


def test_a_redis_that_is_killed_in_the_middle_of_a_run_over_images_costs_no_age(
    node: Node, redis_server: PrivateRedis
) -> None:
    farm = Farm()
    place = "effect/after docker.remove_image image_gc/node run"
    keeping = Keeping(farm, redis_server, struck_job(node, place, victim="redis", redis_pid=redis_server.pid))
    try:
        node.journal.wait_for_event(image_gc.PolicySet)
        images = Images(node)
        images.make(*(f"image{number}" for number in range(6)))
        told_to(node, "image_gc", image_gc.CollectImages(request="now", unused=True))
        finished = node.journal.wait_for_event(image_gc.RunFinished, request="now")
    finally:
        keeping.abandon()
        farm.end()
    assert keeping.struck
    assert (finished.removed, finished.failed) == (6, 0)
    removed = [event.id for event in node.journal.events(image_gc.ImageRemoved)]
    assert sorted(removed) == sorted(images.ids.values())
    assert len(node.journal.events(image_gc.RunStarted)) == 1
    told = told_with_names(node)
    assert len(told) == len({image.id for image in told}), "an age began again"


def check_last_end(node: Node, name: str) -> None:
    """Docker has the container that `logs -p` would show, or a newer end, of which the log is about to tell."""
    gone: set[str] = set()

    def found() -> bool:
        last = ended(node, name)
        if last and last not in gone:
            with suppress(docker.errors.NotFound):
                node.docker.inspect_container(last)
                return True
            gone.add(last)
        return not last

    node.journal.wait_for(f"the last end of {name}, or a newer one", found)


def ended(node: Node, name: str) -> str:
    """The id of the last dead attempt, by the log; empty if there is none."""
    state = node.journal.pods.get(f"default/{name}")
    one = state.container("app") if state is not None else None
    return one.exit.id if one is not None and one.exit is not None else ""


def test_a_busy_collector_gets_in_nobodys_way(node: Node) -> None:
    node.environ["CHRONOLET_CONTAINER_GC_PERIOD"] = "20ms"
    names = [f"crash{number}" for number in range(6)]
    for name in names:
        node.write(f"{name}.yaml", pod(name, shell("app", "echo $HOSTNAME; exit 3"), shell("good")))
    node.write("once.yaml", pod("once", shell("app", "echo $HOSTNAME"), restartPolicy="Never"))
    node.start()

    def restarted() -> bool:
        for name in names:
            check_last_end(node, name)
        gone = {(event.pod, event.rule) for event in node.journal.events(container_gc.Removed)}
        return gone >= {(f"default/{name}", "per_container_limit") for name in names}

    node.journal.wait_for("a restart of each and its first attempt's removal", restarted)

    def waits() -> bool:
        app = node.journal.pods[f"default/{names[-1]}"].container("app")
        return app is not None and app.phase == "backing_off"

    # With the next end the last one goes, also under the eyes of whoever reads what it said.
    with node.standing_still(f"a back-off of {names[-1]}", waits):
        assert node.chronolet("logs", names[-1], "-c", "app", "-p").out == f"{names[-1]}\n"
    # What has ended by itself is kept too, unless the disk is full.
    node.journal.wait_for_event(container_gc.PodFinished, pod="default/once")
    assert node.chronolet("logs", "once").out == "once\n"
    for name in (*names, "once"):
        (node.folder / f"{name}.yaml").unlink()
    for name in (*names, "once"):
        node.journal.wait_for_event(pods.PodEnded, pod=f"default/{name}")
    runs = node.journal.events(container_gc.RunFinished)
    assert runs
    assert [run.error for run in runs if run.error] == []
    assert node.journal.events(container_gc.NotRemoved) == []
    removed = [event.id for event in node.journal.events(container_gc.Removed)]
    assert len(removed) == len(set(removed)), "something was removed twice"
    assert node.docker.containers(all=True, filters={"label": f"{labels.NODE}={node.name}"}) == []
