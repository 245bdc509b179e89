"""ProbeWorkers with delayed attempts: what they send, count and record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pykka
import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.adapters.probes import Probing
from chronolet.ports.pods.probes import Reading
from chronolet.prober.signals import ProbeOutcome
from chronolet.prober.wanted import RunProbe
from chronolet.prober.workers.dependencies import ProberDependencies
from chronolet.prober.workers.probe_worker import ProbeWorker, begin
from chronolet.rules.probes.judgement import Delay
from chronolet_schemas.podspec import Probe, TCPSocketAction
from chronolet_schemas.prober import Shortage
from tests.integration.probes.test_worker import Context, Reported
from tests.support.probes.scripted_attempts import ScriptedAttempts
from tests.support.scratch import wait_until

Script = Sequence[str]


class Scripted(ScriptedAttempts, Probing):
    """A prober whose attempts end immediately, as the script says; its last entry is repeated."""

    def __init__(self, runtime: FakeRuntime, script: Script) -> None:
        Probing.__init__(self, runtime)
        self._script = list(script)
        self.short: tuple[Shortage, ...] = ()

    def reading(self, timeout_seconds: float) -> Reading:
        outcome = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return Reading(
            result="success" if outcome == "success" else "failure",
            output=outcome,
            started=0.0,
            seconds=timeout_seconds,
            timed_out=outcome != "refused",
            delay=Delay(agent=900) if outcome == "delayed" else Delay(),
        )

    def soon(self, action: Callable[[], object]) -> None:
        Probing.soon(self, action)

    def short_of(self) -> tuple[Shortage, ...]:
        return self.short


class World:
    """Runs one worker at a time, with a period of 10 ms."""

    def __init__(self) -> None:
        self.ends: list[Callable[[], object]] = []
        self.reported = Reported()

    def begin(
        self, *script: str, limit: int | None = 3_600_000, short: tuple[Shortage, ...] = (), **more: Any
    ) -> Context:
        prober = Scripted(FakeRuntime(), script)
        prober.short = short
        context = Context()
        fields: dict[str, Any] = {"probe": "Liveness", **more}
        effect = RunProbe(
            subject="worker",
            intent="c1/1/0",
            pod="default/web",
            uid="u",
            container="app",
            attempt=0,
            id="c1",
            definition=Probe(tcp_socket=TCPSocketAction(port=1)),
            period_milliseconds=10,
            ip="127.0.0.1",
            from_at=0,
            anchored=False,
            **fields,
        )
        end = begin(ProberDependencies(prober, self.reported, self.reported, began=0.0, unjudged_limit=limit))(
            effect, context, lambda _: None
        ).stop
        self.ends += [end, lambda: wait_until(lambda: not pykka.ActorRegistry.get_by_class(ProbeWorker), "its end")]
        self.ends.append(prober.stop)
        return context


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    for end in made.ends:
        end()


def sent(context: Context, count: int) -> list[ProbeOutcome]:
    wait_until(lambda: len(context.outcomes()) >= count, f"{count} outcomes")
    return context.outcomes()[:count]


def test_a_timeout_explained_by_a_delay_is_unjudged_and_reported_once(world: World) -> None:
    context = world.begin("timed out", "delayed", "delayed", "delayed", "refused", "success")
    found = sent(context, 4)
    assert [one.outcome for one in found] == ["failure", "unjudged", "failure", "success"]
    assert (found[1].short_of, found[1].unjudged, found[1].stalled_milliseconds >= 900) == (("agent",), 1, True)
    assert [one.outcome for one in world.reported.raw[1:4]] == ["unjudged"] * 3
    assert world.reported.counted[:5] == ["failure", "unjudged", "unjudged", "unjudged", "failure"]
    assert int(world.reported.raw[1].stalled_milliseconds) >= 900


def test_after_the_limit_an_explained_timeout_counts(world: World) -> None:
    context = world.begin("delayed", limit=1, unjudged=2, unjudged_milliseconds=50)
    assert [one.outcome for one in sent(context, 3)] == ["failure"] * 3
    assert [one.outcome for one in world.reported.raw[:4]] == ["unjudged", *["failure"] * 3], "the third is not sent"


def test_without_protection_every_timeout_counts(world: World) -> None:
    context = world.begin("delayed", limit=None, short=("cpu",))
    found = sent(context, 3)
    assert [(one.outcome, one.short_of) for one in found] == [("failure", ())] * 3


def test_a_failure_that_may_stop_the_container_names_the_shortages(world: World) -> None:
    assert sent(world.begin("refused", short=("io",)), 1)[0].short_of == ("io",)


def test_a_readiness_failure_names_no_shortage(world: World) -> None:
    assert sent(world.begin("refused", short=("io",), probe="Readiness"), 1)[0].short_of == ()
