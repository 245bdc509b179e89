"""The ProbeWorker: one pykka actor per probe of a container, all of them on the prober's one thread.

Input: ticks of its own timer, readings of its attempts. Output: `signals`, raw results, metrics. Next: `decider`,
which decides what an outcome means. Source: pkg/kubelet/prober/worker.go (run), prober.go (runProbeWithRetries).

    waiting  -> (tick)                            probing
    probing  -> (error, fewer than 3 attempts)    probing: the next attempt
    probing  -> (any other reading)               reported -> waiting
    probing  -> (container died, probe withdrawn) ended; only the raw result is written
    waiting  -> (shard moves)                     ended; leaves the time of the next probe to its successor
    probing  -> (shard moves)                     finishing -> reported -> ended likewise

A time-out that a stall explains is reported as unjudged until the worker's `Patience` runs out (`unjudged`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pykka
from msgspec.structs import replace

from chronolet.kernel.effects.slot import LostOwnership
from chronolet.kernel.host.shared_actors import SharedActor
from chronolet.kernel.kind import Begun, EffectContext, Ended, Report
from chronolet.ports.pods.probes import Attempt, Cancellable, Prober, Reading, Target
from chronolet.prober import schedule, signals
from chronolet.prober.outcomes import Streak, counts_as, should_retry
from chronolet.prober.targets import target
from chronolet.prober.unjudged import Patience
from chronolet.prober.wanted import RunProbe
from chronolet.prober.workers.dependencies import ProberDependencies
from chronolet.rules.probes.judgement import explained_by, stalled
from chronolet_schemas.prober import Outcome, RawResult, Shortage

FIRST_ATTEMPTS = 2
"""How many of a worker's first attempts look for commands left by a killed agent process. One is not enough: the engine
may start that process's last command a moment later."""
LATE_SECONDS = 60.0
"""Minimum interval between two ProbeLate signals of a worker."""
GIVEN_UP = "probe cancelled: its container died, the probe is no longer wanted, or the lease lapsed"


class Tick(NamedTuple):
    """The message that the next probe is due. `at`: its scheduled time, in seconds of the monotonic clock."""

    at: float


class Finish(NamedTuple):
    """The message to end after the current probe, because the shard moves to another process."""

    report: Report


class Found(NamedTuple):
    """The message that an attempt has ended with `reading`."""

    reading: Reading


class ProbeWorker(SharedActor):
    """Runs one probe of one container while its effect is outstanding."""

    def __init__(self, effect: RunProbe, context: EffectContext, ended: Ended, deps: ProberDependencies) -> None:
        super().__init__(deps.prober)
        self._effect = effect
        self._context = context
        self._ended = ended
        self._deps = deps
        self._prober: Prober = deps.prober
        self._target: Target | str = target(effect.definition, container_id=effect.id, ip=effect.ip)
        self._who = f"{effect.pod}/{effect.container}/{effect.probe}"
        self._period = effect.period_milliseconds / 1000
        self._timeout = float(effect.definition.timeout_seconds)
        self._streak = Streak(effect.definition)
        self._patience = Patience(deps.unjudged_limit or 0, count=effect.unjudged, passed=effect.unjudged_milliseconds)
        self._timer: Cancellable | None = None
        self._attempt: Attempt | None = None
        self._due = 0.0
        self._planned = 0.0
        """When the next probe begins: at its scheduled time, or slightly later together with others
        (`schedule.shared`)."""
        self._behind = 0.0
        self._given = self._timeout
        self._attempts = 0
        """The number of attempts of the current probe."""
        self._attempts_ever = 0
        self._started = 0.0
        self._late_reported = -LATE_SECONDS
        self._next = 0.0
        """The scheduled time of the next probe."""
        self._report: Report | None = None
        """Set once the worker is finishing."""

    # -- pykka -------------------------------------------------------------------------------------------------------

    def on_start(self) -> None:
        """Schedule the first tick according to the wall clock; all later ones use only the monotonic clock."""
        now, clock = _now(), time.monotonic()
        age = round((clock - self._deps.began) * 1000)
        at = schedule.resumed_at(self._context.resume, now, self._effect.period_milliseconds)
        if at is None:
            at = schedule.begins_at(self._effect, now, process_age=age)
        first = clock + (at - now) / 1000
        self._tick_at(first, schedule.FIRST_SHARED_SECONDS)

    def on_receive(self, message: Tick | Found | Finish) -> None:
        match message:
            case Tick():
                if self._report is None:  # else it is left to the successor
                    self._tick(message.at)
            case Finish():
                self._finish(message.report)
            case Found():
                self._found(message.reading)

    def on_stop(self) -> None:
        """Cancel the timer and the current attempt. If that attempt has begun, only its raw result is written, with the
        outcome `error`; no signal is sent.
        """
        if self._timer is not None:
            self._timer.cancel()
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        attempt.cancel()
        if attempt.began:
            self._started = self._due if self._attempts == 1 else self._started
            since = time.monotonic() - self._started
            self._write(Reading(result="error", output=GIVEN_UP, started=self._started, seconds=since), since, "error")

    def on_failure(self, _type: type[BaseException] | None, error: BaseException | None, _traceback: Any) -> None:
        """Stop and report the error; the kernel starts another worker after a back-off."""
        self.on_stop()
        if error is not None:
            self._ended(error)

    # -- moving to another process -----------------------------------------------------------------------------------

    def _finish(self, report: Report) -> None:
        self._report = report
        if self._timer is not None:
            self._timer.cancel()
        if self._attempt is None:
            report(_scheduled(self._next), True)
        else:  # if it is cut off, the successor repeats this probe
            report(_scheduled(self._due), False)

    # -- schedule ----------------------------------------------------------------------------------------------------

    def _tick_at(self, when: float, most: float = math.inf) -> None:
        self._next = when
        self._planned = schedule.shared(when, self._period, most)
        self._timer = self._prober.at(self._planned, lambda: self.actor_ref.tell(Tick(when)))

    def _tick(self, at: float) -> None:
        now = time.monotonic()
        behind = max(now - self._planned, 0.0)  # the planned delay does not count as lateness of the agent
        self._tick_at(at + self._period * (1 + max(now - at, 0.0) // self._period))
        if self._attempt is not None:  # still running: skip this tick
            if not self._attempt.began:
                self._report_late(time.monotonic() - self._due)
            return
        if not self._is_allowed():
            return  # the lease may be renewed; if the effect is obsolete, this worker is about to be stopped
        self._due, self._behind, self._attempts = at, behind, 0
        self._begin_attempt()

    def _is_allowed(self) -> bool:
        """Whether the fence permits a call. Checked before every call, on any thread."""
        try:
            self._context.fence("probe")
        except LostOwnership:
            return False
        return True

    # -- one probe ---------------------------------------------------------------------------------------------------

    def _begin_attempt(self) -> None:
        """Start an attempt. All attempts of a probe share its time-out."""
        self._attempts += 1
        if isinstance(self._target, str):
            self._found(Reading(result="error", output=self._target, started=time.monotonic(), seconds=0.0))
            return
        self._given = self._timeout if self._attempts == 1 else self._left()
        self._attempts_ever += 1
        self._attempt = self._prober.begin(
            self._target,
            self._given,
            self._send_found,
            self._is_allowed,
            probe=self._who,
            first=self._attempts_ever <= FIRST_ATTEMPTS,
        )

    def _left(self) -> float:
        return self._started + self._timeout - time.monotonic()

    def _send_found(self, reading: Reading) -> None:
        self.actor_ref.tell(Found(reading))

    def _found(self, reading: Reading) -> None:
        self._attempt = None
        if self._attempts == 1:
            self._started = reading.started
            self._check_lateness(reading.started - self._due)
        if reading.result == "error" and not self._is_allowed():
            return  # no retry; the missing permission may even be the cause of the error
        if should_retry(reading.result, self._attempts) and self._left() > 0:
            self._begin_attempt()
            return
        self._conclude(reading)
        if self._report is not None:
            self._report(_scheduled(self._next), True)

    def _check_lateness(self, late: float) -> None:
        self._deps.figures.began(self._effect, late)
        if late >= self._period:
            self._report_late(late)

    def _report_late(self, late: float) -> None:
        """Report a delay of a period or more, which means that at least one probe was skipped; at most once per
        LATE_SECONDS.
        """
        now = time.monotonic()
        if now - self._late_reported >= LATE_SECONDS:
            self._late_reported = now
            message = signals.ProbeLate(
                intent=self._effect.intent,
                late_milliseconds=round(late * 1000),
                agent_late_milliseconds=round(self._behind * 1000),
            )
            self._context.send(message)

    def _conclude(self, reading: Reading) -> None:
        since = time.monotonic() - self._started
        delay = replace(reading.delay, late=round(self._behind * 1000))
        reading = replace(reading, delay=delay)
        explained = explained_by(delay, round(self._given * 1000)) if self._may_be_unjudged(reading) else ()
        outcome: Outcome = "unjudged" if explained else reading.result
        self._deps.figures.probed(self._effect, outcome, since)
        at = self._write(reading, since, outcome)
        if outcome == "unjudged":
            self._report_unjudged(reading, at, since, explained)
        else:
            self._report_judged(reading, at, since)

    def _may_be_unjudged(self, reading: Reading) -> bool:
        protects = self._deps.unjudged_limit is not None
        return protects and reading.result == "failure" and reading.timed_out and not self._patience.is_over(_clock())

    def _report_unjudged(self, reading: Reading, at: int, since: float, explained: tuple[Shortage, ...]) -> None:
        now = _clock()
        if self._patience.unjudged(now):
            outcome = signals.ProbeOutcome(
                intent=self._effect.intent,
                outcome="unjudged",
                at=at,
                milliseconds=round(since * 1000),
                output=reading.output[: signals.LONGEST_OUTPUT],
                short_of=explained,
                stalled_milliseconds=stalled(reading.delay),
                unjudged=self._patience.count,
                unjudged_milliseconds=self._patience.passed(now),
            )
            self._context.send(outcome)

    def _report_judged(self, reading: Reading, at: int, since: float) -> None:
        succeeded = counts_as(reading.result) == "success"
        recovered = succeeded and self._patience.succeeded()
        short_of = self._short_of(reading)
        if self._streak.is_news(reading.result, at, short=bool(short_of)) or recovered:
            outcome = signals.ProbeOutcome(
                intent=self._effect.intent,
                outcome=reading.result,
                at=at,
                milliseconds=round(since * 1000),
                output=reading.output[: signals.LONGEST_OUTPUT],
                code=reading.code,
                short_of=short_of,
            )
            self._context.send(outcome)

    def _short_of(self, reading: Reading) -> tuple[Shortage, ...]:
        """Return what the machine is short of if the reading is a failure that may stop the container; else empty."""
        kills = self._effect.probe != "Readiness" and reading.result == "failure"
        return self._prober.short_of() if kills and self._deps.unjudged_limit is not None else ()

    def _write(self, reading: Reading, since: float, outcome: Outcome) -> int:
        """Add the raw result to the stream of probe results, and return when the probe began, in milliseconds since the
        epoch.
        """
        milliseconds = round(since * 1000)
        at = _now() - milliseconds
        late = self._started - self._due
        self._deps.results.add(_raw(self._effect, reading, outcome, at=at, milliseconds=milliseconds, late=late))
        return at


def _raw(effect: RunProbe, reading: Reading, outcome: Outcome, *, at: int, milliseconds: int, late: float) -> RawResult:
    return RawResult(
        pod=effect.pod,
        uid=effect.uid,
        container=effect.container,
        probe=effect.probe,
        id=effect.id,
        outcome=outcome,
        code="" if reading.code is None else str(reading.code),
        at=str(at),
        milliseconds=str(milliseconds),
        late_milliseconds=f"{late * 1000:.1f}",
        output=reading.output,
        read_late_milliseconds=str(reading.delay.read_late),
        stalled_milliseconds=str(stalled(reading.delay)),
        agent_late_milliseconds=str(reading.delay.late),
        attempt=str(effect.attempt),
    )


def _scheduled(at: float) -> str:
    """Return a time of the monotonic clock as milliseconds since the epoch, for the successor."""
    return str(_now() + round((at - time.monotonic()) * 1000))


def _clock() -> int:
    """Return the monotonic clock's time in milliseconds."""
    return time.monotonic_ns() // 1_000_000


def _now() -> int:
    return time.time_ns() // 1_000_000


def begin(deps: ProberDependencies) -> Callable[[RunProbe, EffectContext, Ended], Begun]:
    """Return the function that the kernel calls to start a probe's worker; it returns the functions that end it."""

    def begun(effect: RunProbe, context: EffectContext, ended: Ended) -> Begun:
        deps.figures.begins(effect)
        worker = ProbeWorker.start(effect, context, ended, deps)

        def end() -> None:
            worker.stop(block=False)

        def finish(report: Report) -> None:
            with suppress(pykka.ActorDeadError):  # it has failed, and its host has been told
                worker.tell(Finish(report))

        return Begun(end, finish)

    return begun
