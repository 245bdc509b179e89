"""What-if answers about both garbage collections equal live runs with the same settings, up to the first difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pytest

from chronolet_schemas import container_gc, image_gc
from chronolet_schemas import pod as pods
from chronolet_schemas.envelope import Event
from tests.e2e.collecting.conftest import DISK_MEGABYTES, NEVER
from tests.e2e.collecting.images import Images
from tests.e2e.node import Node, pod, shell
from tests.e2e.whatif.asking import answer, lived, with_change
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.redis.server import PrivateRedis

E = TypeVar("E", bound=Event)
CRASHES_TWICE = "echo >> /runs/of-app; [ $(wc -l < /runs/of-app) -gt 2 ] || exit 3; exec sleep 1000000"
NOTHING = {"CHRONOLET_IMAGE_GC_HIGH_THRESHOLD": "99", "CHRONOLET_IMAGE_GC_LOW_THRESHOLD": "98"}


@pytest.fixture
def node(redis_server: PrivateRedis) -> Iterator[Node]:
    """A node on an engine with a small disk. Its collectors run on request, and remove nothing."""
    with private_docker(disk_megabytes=DISK_MEGABYTES) as engine:
        found = _node(engine, redis_server)
        try:
            yield found
        finally:
            found.close(remove=False)


def _node(engine: PrivateDocker, server: PrivateRedis) -> Node:
    found = Node(engine, server.url, server.folder.name, server.folder / "agent")
    found.environ |= NOTHING | {
        "CHRONOLET_CONTAINER_GC_PERIOD": NEVER,
        "CHRONOLET_IMAGE_GC_PERIOD": NEVER,
        "CHRONOLET_IMAGE_USAGE_PERIOD": "100ms",
        "CHRONOLET_MINIMUM_IMAGE_TTL_DURATION": "0s",
        "CHRONOLET_MAXIMUM_DEAD_CONTAINERS_PER_CONTAINER": "5",
    }
    return found


def collected(node: Node) -> image_gc.RunFinished:
    """Run both collectors; return the result of the collection of images."""
    before = len(node.journal.events(image_gc.RunFinished, trigger="request"))
    result = node.chronolet("gc", "run")
    assert result.status == 0, result
    done = node.journal.wait_for(
        "the collection", lambda: node.journal.events(image_gc.RunFinished, trigger="request")[before:]
    )
    assert isinstance(done[-1], image_gc.RunFinished)
    return done[-1]


def finished(node: Node, event: type[E], since: int) -> E:
    """Wait for the end of a run after that many entries of the log."""

    def found() -> list[E]:
        return [one.event for one in node.journal.lines[since:] if isinstance(one.event, event)]

    first: E = node.journal.wait_for("the collection", found)[0]
    return first


def last(node: Node) -> str:
    node.journal.catch_up()
    return f"#{node.journal.lines[-1].entry.position.n}"


def test_both_collections(node: Node) -> None:
    node.start()
    node.journal.wait_for_event(image_gc.RunFinished)
    node.journal.wait_for_event(container_gc.RunFinished)
    app = shell("app", CRASHES_TWICE, volumeMounts=[{"name": "runs", "mountPath": "/runs"}])
    node.write("crash.yaml", pod("crash", app, volumes=[{"name": "runs", "emptyDir": {}}]))
    node.journal.wait_for_event(pods.ContainerStarted, 120, pod="default/crash", container="app", attempt=2)
    images = Images(node)
    images.create(*(f"image{number}" for number in range(6)))
    begin = last(node)
    found = collected(node)
    end = last(node)
    assert (found.removed, found.usage_percent) == (0, found.usage_percent)
    high = found.usage_percent - 1
    changes = {
        "images": {"image-gc-high-threshold": high, "image-gc-low-threshold": high - 10},
        "dead containers": {"maximum-dead-containers-per-container": 1},
    }
    answers = {
        subject: answer(node, *(f"--set={name}={value}" for name, value in of.items()), "--from", begin, "--to", end)
        for subject, of in changes.items()
    }

    node.kill9()
    flags = [word for of in changes.values() for name, value in of.items() for word in (f"--{name}", str(value))]
    for name in ("IMAGE_GC_HIGH_THRESHOLD", "IMAGE_GC_LOW_THRESHOLD", "MAXIMUM_DEAD_CONTAINERS_PER_CONTAINER"):
        del node.environ[f"CHRONOLET_{name}"]
    started, again = len(node.journal.lines), last(node)
    node.start(0, *flags)  # its collectors run at once
    done = finished(node, image_gc.RunFinished, started)
    finished(node, container_gc.RunFinished, started)
    assert done.removed >= 1
    live = {subject: lived(node, subject, started) for subject in changes}
    for subject, answered in answers.items():
        exact = [_without_bytes(one) for one in with_change(answered, subject)]
        assert exact, answered
        assert exact == [_without_bytes(one) for one in live[subject]][: len(exact)]
        assert exact[-1].startswith("run: "), exact
        assert answered["certainty"] == "estimate"
        estimated = {one["what"]: (one["recorded"], one["changed"]) for one in answered["counts"]}
        what = "images removed" if subject == "images" else "containers removed"
        assert estimated[what] == (0, len([one for one in live[subject] if one.startswith("removed ")]))

    back = answer(node, "--set=image-gc-high-threshold=99", "--set=image-gc-low-threshold=98", "--from", again)
    assert [(one["recorded"], one["changed"]) for one in back["counts"]] == [(done.removed, 0)]
    run = next(one for one in back["rows"] if one["recorded"] and one["recorded"].startswith("run: free "))
    assert (run["changed"], run["certainty"]) == (None, "exact")


def _without_bytes(text: str) -> str:
    """Return the text without the number of bytes to free: the engine's own files grow."""
    return f"run: {text.partition(', ')[2]}" if text.startswith("run: free ") else text
