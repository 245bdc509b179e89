"""ProbeWorkers on a real loop against real servers: their schedule, the outcomes they report, and how they end."""

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
from chronolet.adapters.probes.handlers.exec import MARK
from chronolet.adapters.probes.probing import EXEC_SLOTS, Timing
from chronolet.kernel.effects.slot import LostOwnership
from chronolet.ports.pods.probes import Result
from chronolet.ports.runtime.runtime import Refusal
from chronolet.prober.signals import LONGEST_OUTPUT, ProbeLate, ProbeOutcome
from chronolet.prober.wanted import RunProbe
from chronolet.prober.workers.dependencies import ProberDependencies
from chronolet.prober.workers.probe_worker import GIVEN_UP, ProbeWorker, begin
from chronolet_schemas.envelope import Signal
from chronolet_schemas.podspec import ExecAction, HTTPGetAction, Probe
from chronolet_schemas.prober import RawResult
from tests.support.probes.probing import SERVER_THREAD, Probes, Script, Server, running
from tests.support.scratch import HANG_SECONDS, wait_until

Serve = Callable[[Script], Server]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ILL = b"HTTP/1.1 500 Ill\r\nContent-Length: 0\r\n\r\n"


class Context:
    """A context as the kernel passes it to a worker. It records signals; while `fenced` is set, the worker must not
    act.
    """

    def __init__(self) -> None:
        self.sent: list[Signal] = []
        self.fenced = False
        self.finish: Callable[[], None] = lambda: None
        self.cancelled = threading.Event()
        self.entity, self.cause, self.token, self.resume = "default/web/app/Liveness", "1-1", "t", ""
        self.notes: list[tuple[str, bool]] = []
        """What the worker has reported while it finished."""

    def fence(self, point: str) -> None:
        if self.fenced:
            raise LostOwnership(point)

    def done(self, point: str) -> None: ...

    def send(self, signal: Signal, *, cause: str = "") -> None:
        if not self.cancelled.is_set():
            self.sent.append(signal)

    def outcomes(self) -> list[ProbeOutcome]:
        return [one for one in self.sent if isinstance(one, ProbeOutcome)]


class Reported:
    """Records results and metrics."""

    def __init__(self) -> None:
        self.raw: list[RawResult] = []
        self.late: dict[str, float] = {}
        """The lateness of each container's first probe, in seconds."""
        self.counted: list[Result] = []

    def add(self, result: RawResult) -> None:
        self.raw.append(result)

    def begins(self, probe: RunProbe) -> None: ...

    def began(self, probe: RunProbe, late_seconds: float) -> None:
        self.late.setdefault(probe.container, late_seconds)

    def probed(self, probe: RunProbe, result: Result, seconds: float) -> None:
        self.counted.append(result)


class World:
    """Starts and ends workers."""

    exec_slots = EXEC_SLOTS

    def __init__(self, probes: Probes, runtime: FakeRuntime) -> None:
        self.probes = probes
        self.runtime = runtime
        self.reported = Reported()
        self.ends: list[Callable[[], None]] = []
        self.errors: list[BaseException] = []

    def begin(self, definition: Probe, *, period: int = 50, resume: str = "", **more: Any) -> Context:
        context = Context()
        context.resume = resume
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
        deps = ProberDependencies(self.probes.prober, self.reported, self.reported, began=time.monotonic() - 3600)
        end, finish = begin(deps)(effect, context, self.errors.append)
        context.finish = lambda: finish(lambda note, over: context.notes.append((note, over)))

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


def responses(*answers: bytes) -> Script:
    """Return a script that sends these responses in turn, and then the last one repeatedly."""
    left = itertools.chain(answers, itertools.repeat(answers[-1]))
    return lambda connection, _: connection.sendall(next(left))


def test_probes_run_on_schedule_and_only_changes_are_sent(
    world: World, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(responses(OK, OK, OK, ILL, ILL, ILL, OK))
    times: list[float] = []
    at = world.probes.prober.at
    monkeypatch.setattr(world.probes.prober, "at", lambda when, action: (times.append(when), at(when, action))[1])
    context = world.begin(http(server.port, failure_threshold=2))
    wait_until(lambda: len(world.reported.raw) >= 10, "ten probes")
    words = [one.outcome for one in context.outcomes()]
    # Outcomes are sent only up to a threshold, because later ones change nothing.
    assert words == ["success", "failure", "failure", "success"]
    assert [one.code for one in context.outcomes()] == [200, 500, 500, 200]
    assert [one.outcome for one in world.reported.raw[:7]] == [*["success"] * 3, *["failure"] * 3, "success"]
    assert world.reported.counted[:4] == ["success", "success", "success", "failure"]
    gaps = [round(1000 * (b - a)) for a, b in itertools.pairwise(times[:10])]
    assert gaps
    assert all(gap and (gap % 50 <= 3 or gap % 50 >= 47) for gap in gaps), gaps
    raw = world.reported.raw[0]
    assert (raw.pod, raw.uid, raw.container, raw.probe, raw.id) == ("default/web", "u", "app", "Liveness", "c1")
    assert (raw.code, raw.output) == ("200", "ok")


def test_the_output_that_is_sent_is_truncated(world: World, serve: Serve) -> None:
    body = b"x" * (LONGEST_OUTPUT + 100)
    server = serve(responses(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)))
    context = world.begin(http(server.port))
    wait_until(lambda: bool(context.outcomes()), "an outcome")
    assert context.outcomes()[0].output == "x" * LONGEST_OUTPUT


def test_the_first_probe_is_on_time_and_a_restarted_worker_keeps_the_schedule(world: World, serve: Serve) -> None:
    server = serve(responses(OK))
    now = time.time_ns() // 1_000_000
    world.begin(http(server.port), period=60_000, from_at=now + 300)
    wait_until(lambda: bool(world.reported.raw), "the first probe")
    assert int(world.reported.raw[0].at) >= now + 300
    world.begin(http(server.port), period=400, from_at=now - 100, anchored=True)
    wait_until(lambda: len(world.reported.raw) >= 2, "the first probe of the restarted worker")
    raw = world.reported.raw[1]
    away = (int(raw.at) - float(raw.late_milliseconds) - (now - 100)) % 400
    assert min(away, 400 - away) <= 100, "a whole number of periods later, however late it ran"


def test_a_running_probe_skips_its_due_times(world: World, serve: Serve) -> None:
    def slow(connection: socket.socket, _: bytes) -> None:
        time.sleep(0.2)
        connection.sendall(OK)

    server = serve(slow)
    world.begin(http(server.port))
    wait_until(lambda: len(world.reported.raw) >= 3, "three probes")
    due = [int(one.at) - float(one.late_milliseconds) for one in world.reported.raw]
    assert all(b - a > 150 for a, b in itertools.pairwise(due)), "skipped times are not made up for"


def test_an_error_of_the_probe_itself_is_attempted_three_times(world: World) -> None:
    context = world.begin(Probe(exec=ExecAction(command=("x",)), timeout_seconds=600), period=3_600_000)
    wait_until(lambda: bool(context.outcomes()), "the outcome")
    (outcome,) = context.outcomes()
    assert (outcome.outcome, outcome.code) == ("error", None)
    assert world.runtime.calls.count("create_exec") == 3
    assert world.reported.counted == ["error"]


def test_all_attempts_share_the_timeout_of_the_probe(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert 1 <= len(calls) < 3, "fewer attempts than without a time-out"
    release.set()


def test_a_definition_without_a_target_is_an_error(world: World) -> None:
    context = world.begin(Probe(http_get=HTTPGetAction(port="web")), period=60_000)
    wait_until(lambda: bool(context.outcomes()), "the outcome")
    assert context.outcomes()[0].output == "couldn't find port: web"


def test_without_the_lease_no_probe_runs(world: World, serve: Serve) -> None:
    server = serve(responses(OK))
    context = world.begin(http(server.port), period=20)
    wait_until(lambda: bool(context.outcomes()), "a probe")
    context.fenced = True
    before = len(server.requests)
    time.sleep(0.2)
    assert len(server.requests) <= before + 1
    context.fenced = False
    wait_until(lambda: len(server.requests) > before + 1, "another probe")


def test_without_the_lease_there_is_no_second_attempt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[float] = []

    def loses(*_: object, **__: object) -> str:
        attempts.append(time.monotonic())
        context.fenced = True
        raise Refusal("failed", "no")

    monkeypatch.setattr(world.runtime, "create_exec", loses)
    begins = time.time_ns() // 1_000_000 + 100
    context = world.begin(Probe(exec=ExecAction(command=("x",)), timeout_seconds=600), period=50, from_at=begins)
    wait_until(lambda: context.fenced, "the first attempt")
    time.sleep(0.2)
    assert (len(attempts), context.outcomes()) == (1, [])
    monkeypatch.undo()
    context.fenced = False
    wait_until(lambda: bool(context.outcomes()), "an outcome, with the lease")


long_slots = pytest.mark.parametrize("timing", [Timing(exec_slot_seconds=3600.0)], ids=["long-slots"])
"""Timing with which a CPU-bound command keeps its slot until it exits; the test also needs the fixture `computing`."""


@pytest.fixture
def computing(monkeypatch: pytest.MonkeyPatch, runtime: FakeRuntime) -> None:
    """Make all running commands seem CPU-bound."""
    monkeypatch.setattr(runtime.execs, "seconds", lambda one: math.inf if one in running_commands(runtime) else None)


def running_commands(runtime: FakeRuntime) -> list[str]:
    return [one for one, state in list(runtime.execs.all.items()) if state.is_running()]


def queued_number(world: World) -> int:
    """Wait until all probes but one are running; return the number of the queued one."""
    wait_until(lambda: len(running_commands(world.runtime)) == world.exec_slots, "all but one to run")
    probing = " ".join(world.runtime.execs.all[one].env[MARK] for one in running_commands(world.runtime))
    (waits,) = (number for number in range(world.exec_slots + 1) if f"/c{number}/" not in probing)
    return waits


@long_slots
@pytest.mark.usefixtures("computing")
def test_a_probe_that_is_queued_for_too_long_reports_it(world: World) -> None:
    """A queued probe reports its lateness, and nothing else until its turn comes."""
    computes = Probe(exec=ExecAction(command=("computes",)), timeout_seconds=3600)
    container = running(world.runtime)
    total = world.exec_slots + 1
    contexts = [world.begin(computes, period=100, id=container, container=f"c{number}") for number in range(total)]
    reports = contexts[queued_number(world)].sent
    wait_until(lambda: bool(reports), "its report")
    (late,) = reports
    assert isinstance(late, ProbeLate)
    queued = time.monotonic()
    wait_until(lambda: time.monotonic() > queued + 1, "a while")

    def all_had_their_turn() -> bool:
        for one in running_commands(world.runtime):
            world.runtime.execs.all[one].end(0)
        return len(world.reported.late) == total

    wait_until(all_had_their_turn, "its turn")
    assert max(world.reported.late.values()) >= 0.5
    assert 100 <= late.late_milliseconds < max(world.reported.late.values()) * 1000
    counts = [sum(isinstance(one, ProbeLate) for one in context.sent) for context in contexts]
    assert set(counts) <= {0, 1}, "once a minute"


def test_a_worker_that_ends_during_an_attempt_records_an_error_and_reports_nothing(world: World, serve: Serve) -> None:
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
    assert (context.outcomes(), world.reported.counted) == ([], [])
    (raw,) = world.reported.raw
    assert (raw.outcome, raw.output, raw.code) == ("error", GIVEN_UP, "")


@long_slots
@pytest.mark.usefixtures("computing")
def test_a_worker_that_ends_while_queued_made_no_attempt(world: World) -> None:
    computes = Probe(exec=ExecAction(command=("computes",)), timeout_seconds=3600)
    container = running(world.runtime)
    total = world.exec_slots + 1
    contexts = [world.begin(computes, period=100, id=container, container=f"c{number}") for number in range(total)]
    queued = queued_number(world)
    wait_until(lambda: bool(contexts[queued].sent), "the report of the queued one")
    world.ends[queued]()
    wait_until(lambda: len(pykka.ActorRegistry.get_by_class(ProbeWorker)) == total - 1, "its end")
    assert world.reported.raw == []
    wait_until(lambda: len(running_commands(world.runtime)) == world.exec_slots, "the others to run")
    world.end()
    assert [raw.output for raw in world.reported.raw] == [GIVEN_UP] * world.exec_slots


def test_a_failing_worker_is_reported_to_the_kernel(
    world: World, monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(world.reported, "probed", fails)
    world.begin(http(serve(responses(OK)).port))
    wait_until(lambda: bool(world.errors), "the failure")
    assert str(world.errors[0]) == "a defect"
    wait_until(lambda: not pykka.ActorRegistry.get_by_class(ProbeWorker), "its end")


def test_three_hundred_workers_add_no_thread(world: World, serve: Serve) -> None:
    server = serve(responses(OK))
    for _ in range(2):
        world.begin(http(server.port))
    wait_until(lambda: bool(world.reported.raw), "a probe")
    before = threads()
    now = time.time_ns() // 1_000_000
    for _ in range(300):
        world.begin(http(server.port), period=60_000, from_at=now + 60_000)
    assert threads() <= before


def threads() -> int:
    """Return the number of threads, excluding those of the test server, which has one per connection."""
    return sum(one.name != SERVER_THREAD for one in threading.enumerate())


def test_a_worker_between_two_probes_leaves_the_time_of_the_next_one(world: World, serve: Serve) -> None:
    server = serve(responses(OK))
    context = world.begin(http(server.port), period=3_600_000)
    wait_until(lambda: len(world.reported.raw) == 1, "the first probe")
    began = int(world.reported.raw[0].at) - float(world.reported.raw[0].late_milliseconds)
    context.finish()
    wait_until(lambda: bool(context.notes), "the end")
    ((note, over),) = context.notes
    assert over
    assert abs(int(note) - began - 3_600_000) <= 50, "one period after the last probe"
    assert len(server.requests) == 1


def test_a_worker_in_the_middle_of_a_probe_ends_after_its_outcome(world: World, serve: Serve) -> None:
    """If it is cut off before, its successor repeats that probe."""
    answer = threading.Event()

    def slow(connection: socket.socket, _: bytes) -> None:
        answer.wait(HANG_SECONDS)
        connection.sendall(OK)

    server = serve(slow)
    context = world.begin(http(server.port), period=3_600_000)
    wait_until(lambda: len(server.requests) == 1, "a probe that waits for its answer")
    context.finish()
    wait_until(lambda: len(context.notes) == 1, "the first note")
    assert not context.outcomes()
    answer.set()
    wait_until(lambda: len(context.notes) == 2, "the end")
    assert [one.outcome for one in context.outcomes()] == ["success"]
    (repeat, early), (following, over) = context.notes
    assert (early, over) == (False, True)
    assert abs(int(following) - int(repeat) - 3_600_000) <= 50


def test_probes_go_on_at_their_times_when_workers_take_turns(world: World, serve: Serve) -> None:
    """Each worker takes over from the one before: no scheduled time is skipped, and none is probed twice."""
    server = serve(responses(OK))
    period, note = 100, ""
    for turn in range(1, 16):
        context = world.begin(http(server.port), period=period, resume=note)
        wait_until(lambda turn=turn: len(world.reported.raw) >= turn, "a probe")
        context.finish()
        wait_until(lambda context=context: any(over for _, over in context.notes), "the end")
        note = context.notes[-1][0]
    due = [int(one.at) - float(one.late_milliseconds) for one in world.reported.raw]
    steps = [(b - a) / period for a, b in itertools.pairwise(due)]
    assert len(steps) >= 14
    # A worker that was late by a period skips a time, as without moves.
    assert all(abs(step - round(step)) < 0.3 and round(step) >= 1 for step in steps), steps
