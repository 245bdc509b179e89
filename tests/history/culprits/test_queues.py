"""Queues, and calls that the engine does not answer, as the cause of a slow start."""

from __future__ import annotations

from chronolet.ports.spans import TURN
from chronolet_schemas import pod
from tests.cli.support.pod_start import SANDBOX, Started
from tests.cli.support.written_node import NOON
from tests.history.culprits.lines import first_line


def test_a_full_queue(start: Started) -> None:
    asked = start.sandbox(9_000)
    start.waited(asked, 8_800.0, at_work=4, allowed=4, ahead=7, holders=("default/a", "default/b", "default/c"))
    start.image()
    start.container()
    assert first_line(start) == (
        "default/web took 9.106 s to start, 8.800 s of it (97 %) queued before starting the sandbox: "
        "4 of at most 4 starts were running (default/a, default/b, default/c, 1 more), and 7 more came before it"
    )


def test_a_queue_behind_the_first_of_a_batch(start: Started) -> None:
    start.waited(start.sandbox(9_000), 8_800.0, at_work=1, allowed=2, ahead=4, holders=("default/first",))
    start.image()
    start.container()
    assert first_line(start).endswith(
        "1 of at most 2 starts was running alone, as the first of a batch (default/first), and 4 more came before it"
    )


def test_a_start_that_is_still_queued(start: Started) -> None:
    asked = start.after(4, pod.SandboxStartRequested(**SANDBOX, spec_hash="s", requested_at=NOON))
    start.waits(asked, at_work=1, allowed=1, holders=("default/first",))
    start.node.now += 20_000
    assert first_line(start) == (
        "default/web has been starting for 20.000 s, 20.000 s of it (100 %) queued before starting the "
        "sandbox: 1 of at most 1 start was running (default/first)"
    )


def test_a_wait_without_details(start: Started) -> None:
    start.called(start.sandbox(9_000), TURN, 4, 8_800.0)
    start.image()
    start.container()
    assert first_line(start).endswith("starting the sandbox: the engine was at its measured limit")


def test_a_call_that_the_engine_does_not_answer(start: Started) -> None:
    asked = start.after(4, pod.SandboxStartRequested(**SANDBOX, spec_hash="s", requested_at=NOON))
    start.waits(asked, "docker.start")
    start.node.now += 20_000
    assert first_line(start).endswith("starting the sandbox: docker.start has not answered for 20.000 s")
