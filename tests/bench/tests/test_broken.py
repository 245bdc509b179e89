"""The steps of a restart for a failed probe add up to the time from the probe's start to the new container's."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from chronolet_schemas import codec, pleg, pod, prober, registry
from chronolet_schemas.envelope import START, Entry, Event, Position
from tests.bench.pods import broken, steps

PROBE: dict[str, Any] = {"pod": "default/an-1", "uid": "u", "container": "app", "probe": "Liveness", "id": "c"}


class Log:
    """A store with the entries of a log."""

    def __init__(self, *events: tuple[int, Event]) -> None:
        self._events = events

    def scan(self, after: Position) -> Iterator[Entry]:
        for number, (at, event) in enumerate(self._events):
            name = registry.type_of(type(event))
            yield Entry(Position(at, number), name, "", "", "", "", codec.encode(event))


def restarts(*events: tuple[int, Event]) -> Sequence[steps.Steps]:
    return list(steps.restarts(Log(*events), START, "an-"))  # type: ignore[arg-type]


def probed(at: int, outcome: type[prober.ProbeFailed | prober.ProbeSucceeded], *, held: bool = True) -> Event:
    return outcome(**PROBE, consecutive=1, threshold=1, at=at, milliseconds=20, held=held)


def restarted(at: int) -> list[tuple[int, Event]]:
    """Return the events of a restart: a stop 30 ms after `at`, the container's exit, and the next start."""
    about = {"pod": PROBE["pod"], "uid": "u", "container": "app", "attempt": 0}
    stop = pod.ContainerStopRequested(**about, id="c", grace_period_seconds=5, deadline=0, reason="LivenessFailed")
    end = pod.ContainerExited(**about, id="c", exit_code=0, reason="Completed", started_at=0, finished_at=at + 80)
    return [(at + 30, stop), (at + 85, end), (at + 200, pod.ContainerStarted(**about, id="d", started_at=at + 190))]


@pytest.mark.parametrize("held", [True, False])
def test_the_steps_add_up_to_the_time_from_the_failing_probe(held: bool) -> None:
    (found,) = restarts((1_022, probed(1_000, prober.ProbeFailed, held=held)), *restarted(1_000))
    assert found == steps.Steps(probe=20, decided=10, stopped=50, noticed=5, started=105)
    assert sum(found) == 190


def test_the_first_probe_that_failed_counts() -> None:
    again = [(at, probed(at, prober.ProbeFailed, held=False)) for at in (500, 1_500)]
    assert [sum(one) for one in restarts(*again, *restarted(2_000))] == [1_690]


def test_a_probe_that_succeeded_again_does_not_count() -> None:
    assert not restarts(
        (500, probed(500, prober.ProbeFailed)), (700, probed(700, prober.ProbeSucceeded)), *restarted(1_000)
    )


def test_a_held_back_stop_does_not_count() -> None:
    held = pleg.ProbeKillHeld(
        **{name: PROBE[name] for name in ("pod", "uid", "container", "probe", "id")}, started_at=0, at=600
    )
    assert not restarts((500, probed(500, prober.ProbeFailed)), (600, held), *restarted(1_000))


def test_figures_cover_all_restarts_next_to_bare_calls() -> None:
    found = broken.Broken([0.4, 0.6, 0.8], [steps.Steps(20, 10, 50, 5, spent) for spent in (15, 105, 315)], 1)
    median, slowest, from_break, _ = broken.figures_of("http", found, [0.2, 0.2, 0.2], 4)
    assert (median.ours, median.reference, median.goal, median.met) == (0.19, 0.2, 0.15, False)
    assert slowest.ours == pytest.approx(0.4, rel=0.02)
    assert from_break.ours == 0.6
    assert from_break.note == "3 of 4 breaks ended within a minute, 1 other restarts"


def test_without_a_restart_there_is_an_error() -> None:
    with pytest.raises(AssertionError, match="no container"):
        broken.figures_of("exec", broken.Broken([], [], 0), [0.2], 4)
