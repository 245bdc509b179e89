"""Image pulls as the cause of a slow start."""

from __future__ import annotations

from typing import Any

from chronolet.ports.spans import PULL_TURN
from chronolet_schemas import pod
from tests.cli.support.pod_start import FIRST, IMAGE, PROCESS, Started
from tests.cli.support.written_node import NOON
from tests.history.culprits.lines import first_line

SLOW = "127.0.0.1:5000/team/slow:1"


def test_a_slow_pull(start: Started) -> None:
    start.sandbox()
    start.image(pulled_for=11_700)
    start.container()
    assert first_line(start) == (
        "default/web took 12.006 s to start, 11.705 s of it (97 %) getting image busybox:1 for container app: "
        "pulled in 11.7 s"
    )


def other_pull(start: Started, *, ended_after: int, took: int) -> None:
    """Record another pod's pull, which ends `ended_after` milliseconds after noon."""
    about: dict[str, Any] = {"pod": "default/other", "uid": "o", "container": "app", "attempt": 0}
    ready = pod.ImageReady(**about, image=SLOW, image_id="i", pulled=True, milliseconds=took)
    start.node.now = NOON + ended_after
    start.node.write("pod/default/other", ready)


def test_a_pull_that_waited_for_less_time_than_it_took(start: Started) -> None:
    start.sandbox()
    start.asks_image()
    other_pull(start, ended_after=3_204, took=9_000)
    ready: dict[str, Any] = {"image": IMAGE, "image_id": "i", "pulled": True}
    start.after(8_000, pod.ImageReady(**FIRST, **ready, milliseconds=8_000, waited_milliseconds=3_000))
    start.container()
    assert first_line(start) == (
        "default/web took 11.301 s to start, 11.000 s of it (97 %) getting image busybox:1 for container app: "
        f"pulled in 8.0 s, after 3.0 s of waiting in the queue behind the pull of {SLOW}"
    )


def test_a_pull_that_mostly_waited_by_the_log_alone(start: Started) -> None:
    start.node.spans[PROCESS] = []
    start.sandbox()
    start.asks_image()
    other_pull(start, ended_after=150, took=100)  # ended before the pod's pull was requested
    other_pull(start, ended_after=9_204, took=20_000)
    ready: dict[str, Any] = {"image": IMAGE, "image_id": "i", "pulled": True}
    start.after(200, pod.ImageReady(**FIRST, **ready, milliseconds=200, waited_milliseconds=9_000))
    start.container()
    assert start.run().output.splitlines()[0] == (
        "default/web took 9.501 s to start, 9.000 s of it (95 %) queued before getting image busybox:1 "
        f"for container app: pulled in 0.2 s, after 9.0 s of waiting in the queue behind the pull of {SLOW}"
    )


def test_a_pull_that_is_still_waiting(start: Started) -> None:
    start.sandbox()
    asked = start.asks_image()
    start.waits(asked, PULL_TURN, at_work=1, allowed=1, ahead=2, holders=(SLOW,))
    start.node.now += 30_000
    assert first_line(start) == (
        "default/web has been starting for 30.200 s, 30.000 s of it (99 %) queued before getting image "
        f"busybox:1 for container app: 1 of at most 1 pull was running ({SLOW}), and 2 more came before it"
    )


def test_a_running_pull_shows_its_progress(start: Started) -> None:
    start.sandbox()
    start.asks_image()
    start.after(5_000, pod.ImagePullProgress(**FIRST, image=IMAGE, done_bytes=2_500_000, total_bytes=40_000_000))
    start.node.now += 1_000
    assert first_line(start).endswith("getting image busybox:1 for container app: 2.5 of 40.0 MB pulled")


def test_a_running_pull_without_progress_shows_its_duration(start: Started) -> None:
    start.sandbox()
    start.waits(start.asks_image(), "docker.pull")
    start.node.now += 6_000
    assert first_line(start).endswith(
        "getting image busybox:1 for container app: its pull has been running for 6.000 s"
    )
