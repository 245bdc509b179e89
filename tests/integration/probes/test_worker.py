"""ProbeWorkers on a real loop against real servers: their times, what they tell, and that they end."""

from __future__ import annotations

import itertools
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pykka
import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.adapters.probes import probing
from chronolet.adapters.probes.handlers.exec import MARK
from chronolet.adapters.probes.probing import EXECS_AT_ONCE
from chronolet.kernel.effects.runner import LostOwnership
from chronolet.ports.pods.probes import Result
from chronolet.ports.runtime.runtime import Refusal
from chronolet.prober.outside import Outside
from chronolet.prober.signals import ProbeLate, ProbeOutcome
from chronolet.prober.wanted import RunProbe
from chronolet.prober.worker import GIVEN_UP, ProbeWorker, begin
from chronolet_schemas.envelope import Signal
from chronolet_schemas.podspec import ExecAction, HTTPGetAction, Probe
from chronolet_schemas.prober import RawResult
from tests.support.probes.probing import SERVER_THREAD, Probes, Script, Server, running
from tests.support.scratch import HANG_SECONDS, wait_until

Serve = Callable[[Script], Server]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ILL = b"HTTP/1.1 500 Ill\r\nContent-Length: 0\r\n\r\n"


class Context:
    """What the kernel gives a worker."""

    def __init__(self) -> None:
        self.sent: list[Signal] = []
        self.fenced = False
        self.cancelled = threading.Event()
        self.entity, self.cause, self.token = "default/web/app/Liveness", "1-1", "t"

    def fence(self, point: str) -> None:
        if self.fenced:
            raise LostOwnership(point)

    def done(self, point: str) -> None: ...

    def send(self, signal: Signal, *, cause: str = "") -> None:
        if not self.cancelled.is_set():
            self.sent.append(signal)

    def outcomes(self) -> list[ProbeOutcome]:
        return [one for one in self.sent if isinstance(one, ProbeOutcome)]


class Told:
    """Results and figures."""

    def __init__(self) -> None:
        self.raw: list[RawResult] = []
        self.late: dict[str, float] = {}
        """Of each container's first probe."""
        self.counted: list[Result] = []

    def add(self, result: RawResult) -> None:
        self.raw.append(result)

    def begins(self, probe: RunProbe) -> None: ...

    def began(self, probe: RunProbe, late_seconds: float) -> None:
        self.late.setdefault(probe.container, late_seconds)

    def probed(self, probe: RunProbe, result: Result, seconds: float) -> None:
        self.counted.append(result)


class World:
    """Workers to be begun and ended."""

    execs_at_once = EXECS_AT_ONCE

    def __init__(self, probes: Probes, runtime: FakeRuntime) -> None:
        self.probes = probes
        self.runtime = runtime
        self.told = Told()
        self.ends: list[Callable[[], None]] = []
        self.errors: list[BaseException] = []

    def begin(self, definition: Probe, *, period: int = 50, **more: Any) -> Context:
        context = Context()
        fields: dict[str, Any] = {"from_at": 0, "anchored": False, "id": "c1", "container": "app"} | more
        effect = RunProbe(
            subject="worker",
            intent="c1/1/0",
            pod="default/web",
            uid="u",
            probe="Liveness",
            attempt=0,
            definition=definition,
            period_milliseconds=period,
            ip="127.0.0.1",
            **fields,
        )
        outside = Outside(self.probes.prober, self.told, self.told, began=time.monotonic() - 3600)
        end = begin(outside)(effect, context, self.errors.append)

        def cancel() -> None:
            context.cancelled.set()
            end()

        self.ends.append(cancel)
        return context

    def end(self) -> None:
        for end in self.ends:
            end()
        self.ends.clear()
        wait_until(lambda: not pykka.ActorRegistry.get_by_class(ProbeWorker), "the end of all workers")


@pytest.fixture
def world(probes: Probes, runtime: FakeRuntime) -> Iterator[World]:
    made = World(probes, runtime)
    yield made
    made.end()


def http(port: int, timeout_seconds: int = 60, **more: Any) -> Probe:
    return Probe(timeout_seconds=timeout_seconds, http_get=HTTPGetAction(port=port, path="/"), **more)


def says(*answers: bytes) -> Script:
    """One answer after the other, the last for ever."""
    left = itertools.chain(answers, itertools.repeat(answers[-1]))
    return lambda connection, _: connection.sendall(next(left))


def test_probes_come_at_their_times_and_only_news_is_sent(
    world: World, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(says(OK, OK, OK, ILL, ILL, ILL, OK))
    times: list[float] = []
    at = world.probes.prober.at
    monkeypatch.setattr(world.probes.prober, "at", lambda when, action: (times.append(when), at(when, action))[1])
    context = world.begin(http(server.port, failure_threshold=2))
    wait_until(lambda: len(world.told.raw) >= 10, "ten probes")
    words = [one.outcome for one in context.outcomes()]
    # As far as a threshold, and no further: what comes after it says nothing new.
    assert words == ["success", "failure", "failure", "success"]
    assert [one.code for one in context.outcomes()] == [200, 500, 500, 200]
    assert [one.outcome for one in world.told.raw[:7]] == [*["success"] * 3, *["failure"] * 3, "success"]
    assert world.told.counted[:4] == ["success", "success", "success", "failure"]
    gaps = [round(1000 * (b - a)) for a, b in itertools.pairwise(times[:10])]
    assert gaps
    assert all(gap and (gap % 50 <= 3 or gap % 50 >= 47) for gap in gaps), gaps
    raw = world.told.raw[0]
    assert (raw.pod, raw.uid, raw.container, raw.probe, raw.id) == ("default/web", "u", "app", "Liveness", "c1")
    assert (raw.code, raw.output) == ("200", "ok")


def test_the_first_time_is_waited_for_and_kept_by_one_that_begins_anew(world: World, serve: Serve) -> None:
    server = serve(says(OK))
    now = time.time_ns() // 1_000_000
    world.begin(http(server.port), period=60_000, from_at=now + 300)
    wait_until(lambda: bool(world.told.raw), "the first probe")
    assert int(world.told.raw[0].at) >= now + 300
    world.begin(http(server.port), period=400, from_at=now - 100, anchored=True)
    wait_until(lambda: len(world.told.raw) >= 2, "the first probe of the other")
    raw = world.told.raw[1]
    away = (int(raw.at) - float(raw.late_milliseconds) - (now - 100)) % 400
    assert min(away, 400 - away) <= 100, "a whole number of periods after it, however late it began"


def test_a_probe_that_is_still_at_work_lets_its_times_pass(world: World, serve: Serve) -> None:
    def slow(connection: socket.socket, _: bytes) -> None:
        time.sleep(0.2)
        connection.sendall(OK)

    server = serve(slow)
    world.begin(http(server.port))
    wait_until(lambda: len(world.told.raw) >= 3, "three probes")
    due = [int(one.at) - float(one.late_milliseconds) for one in world.told.raw]
    assert all(b - a > 150 for a, b in itertools.pairwise(due)), "those that pass are not made up for"


def test_an_error_of_the_asking_is_tried_three_times(world: World) -> None:
    context = world.begin(Probe(exec=ExecAction(command=("x",)), timeout_seconds=600), period=3_600_000)
    wait_until(lambda: bool(context.outcomes()), "the outcome")
    (outcome,) = context.outcomes()
    assert (outcome.outcome, outcome.code) == ("error", None)
    assert world.runtime.calls.count("create_exec") == 3
    assert world.told.counted == ["error"]


def test_all_tries_together_have_the_probes_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    calls: list[str] = []

    def hang(*_: object, **__: object) -> str:
        calls.append("create_exec")
        release.wait(0.7)
        raise Refusal("failed", "slow and wrong")

    monkeypatch.setattr(world.runtime, "create_exec", hang)
    context = world.begin(Probe(exec=ExecAction(command=("x",)), timeout_seconds=1), period=60_000)
    wait_until(lambda: bool(context.outcomes()), "the outcome")
    assert context.outcomes()[0].outcome == "error"
    assert 1 <= len(calls) < 3, "fewer than an error is worth otherwise"
    release.set()


def test_a_definition_that_asks_nobody_is_an_error(world: World) -> None:
    context = world.begin(Probe(http_get=HTTPGetAction(port="web")), period=60_000)
    wait_until(lambda: bool(context.outcomes()), "the outcome")
    assert context.outcomes()[0].output == "couldn't find port: web"


def test_without_the_lease_nobody_is_asked(world: World, serve: Serve) -> None:
    server = serve(says(OK))
    context = world.begin(http(server.port), period=20)
    wait_until(lambda: bool(context.outcomes()), "a probe")
    context.fenced = True
    before = len(server.requests)
    time.sleep(0.2)
    assert len(server.requests) <= before + 1
    context.fenced = False
    wait_until(lambda: len(server.requests) > before + 1, "another probe")


def test_without_the_lease_nothing_is_tried_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[float] = []

    def loses(*_: object, **__: object) -> str:
        tries.append(time.monotonic())
        context.fenced = True
        raise Refusal("failed", "no")

    monkeypatch.setattr(world.runtime, "create_exec", loses)
    begins = time.time_ns() // 1_000_000 + 100
    context = world.begin(Probe(exec=ExecAction(command=("x",)), timeout_seconds=600), period=50, from_at=begins)
    wait_until(lambda: context.fenced, "the first try")
    time.sleep(0.2)
    assert (len(tries), context.outcomes()) == (1, [])
    monkeypatch.undo()
    context.fenced = False
    wait_until(lambda: bool(context.outcomes()), "an outcome, with the lease")


@pytest.fixture
def computing(monkeypatch: pytest.MonkeyPatch, runtime: FakeRuntime) -> None:
    """What computes keeps its place until it ends. Before `probes`."""
    monkeypatch.setattr(probing, "EXEC_LONGEST_SECONDS", 3600.0)
    monkeypatch.setattr(runtime.execs, "seconds", lambda one: math.inf if one in at_work(runtime) else None)


def at_work(runtime: FakeRuntime) -> list[str]:
    return [one for one, state in list(runtime.execs.all.items()) if state.is_running()]


def who_waits(world: World) -> int:
    """The number of the only one that has to wait for its turn, once all others are at work, begun on time or late."""
    wait_until(lambda: len(at_work(world.runtime)) == world.execs_at_once, "all but one at work")
    askers = " ".join(world.runtime.execs.all[one].env[MARK] for one in at_work(world.runtime))
    (waits,) = (number for number in range(world.execs_at_once + 1) if f"/c{number}/" not in askers)
    return waits


@pytest.mark.usefixtures("computing")
def test_what_waits_too_long_for_its_turn_says_so(world: World) -> None:
    """While it waits: it says nothing else until its turn comes."""
    computes = Probe(exec=ExecAction(command=("computes",)), timeout_seconds=3600)
    container = running(world.runtime)
    total = world.execs_at_once + 1
    contexts = [world.begin(computes, period=100, id=container, container=f"c{number}") for number in range(total)]
    said_late = contexts[who_waits(world)].sent
    wait_until(lambda: bool(said_late), "its word")
    (late,) = said_late
    assert isinstance(late, ProbeLate)
    waiting = time.monotonic()
    wait_until(lambda: time.monotonic() > waiting + 1, "a while")

    def all_had_their_turn() -> bool:
        for one in at_work(world.runtime):
            world.runtime.execs.all[one].end(0)
        return len(world.told.late) == total

    wait_until(all_had_their_turn, "its turn")
    assert max(world.told.late.values()) >= 0.5
    assert 100 <= late.late_milliseconds < max(world.told.late.values()) * 1000
    said = [sum(isinstance(one, ProbeLate) for one in context.sent) for context in contexts]
    assert set(said) <= {0, 1}, "once a minute"


def test_one_that_is_ended_while_it_asks_writes_that_down_and_tells_nothing(world: World, serve: Serve) -> None:
    asked, release = threading.Event(), threading.Event()

    def waits(connection: socket.socket, _: bytes) -> None:
        asked.set()
        release.wait(HANG_SECONDS)
        connection.sendall(OK)

    context = world.begin(http(serve(waits).port, timeout_seconds=600))
    assert asked.wait(HANG_SECONDS)
    world.end()
    release.set()
    time.sleep(0.1)
    assert (context.outcomes(), world.told.counted) == ([], [])
    (raw,) = world.told.raw
    assert (raw.outcome, raw.output, raw.code) == ("error", GIVEN_UP, "")


@pytest.mark.usefixtures("computing")
def test_one_that_waits_for_its_turn_when_it_is_ended_was_not_asked(world: World) -> None:
    computes = Probe(exec=ExecAction(command=("computes",)), timeout_seconds=3600)
    container = running(world.runtime)
    total = world.execs_at_once + 1
    contexts = [world.begin(computes, period=100, id=container, container=f"c{number}") for number in range(total)]
    waits = who_waits(world)
    wait_until(lambda: bool(contexts[waits].sent), "word of one that waits")
    world.ends[waits]()
    wait_until(lambda: len(pykka.ActorRegistry.get_by_class(ProbeWorker)) == total - 1, "its end")
    assert world.told.raw == []
    wait_until(lambda: len(at_work(world.runtime)) == world.execs_at_once, "the others at work")
    world.end()
    assert [raw.output for raw in world.told.raw] == [GIVEN_UP] * world.execs_at_once


def test_one_that_fails_is_told_to_the_kernel(world: World, monkeypatch: pytest.MonkeyPatch, serve: Serve) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(world.told, "probed", fails)
    world.begin(http(serve(says(OK)).port))
    wait_until(lambda: bool(world.errors), "the failure")
    assert str(world.errors[0]) == "a defect"
    wait_until(lambda: not pykka.ActorRegistry.get_by_class(ProbeWorker), "its end")


def test_three_hundred_workers_add_no_thread(world: World, serve: Serve) -> None:
    server = serve(says(OK))
    for _ in range(2):
        world.begin(http(server.port))
    wait_until(lambda: bool(world.told.raw), "a probe")
    before = threads()
    now = time.time_ns() // 1_000_000
    for _ in range(300):
        world.begin(http(server.port), period=60_000, from_at=now + 60_000)
    assert threads() <= before


def threads() -> int:
    """Without the test server's own, one for each connection."""
    return sum(one.name != SERVER_THREAD for one in threading.enumerate())
