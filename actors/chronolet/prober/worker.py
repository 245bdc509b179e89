"""The ProbeWorker: one pykka actor for each probe of a container, all of them on the prober's one thread.

Comes in: ticks of its own timer, readings of its attempts. Goes out: `signals`, raw results, figures. Next: `decider`.
Answers to pkg/kubelet/prober/worker.go (run) and prober.go (runProbeWithRetries); what an outcome means is not decided
here.

    waiting -> (its time) asking -> (an error, up to three times) asking again -> told -> waiting
    told: a time-out that a stall explains is unjudged, as long as `patience` lasts
    asking -> ended, for its container has died or the probe is not wanted any more: only written down
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec.structs import replace

from chronolet.kernel.effects.runner import LostOwnership
from chronolet.kernel.hosting.shared_actors import SharedActor
from chronolet.kernel.kind import EffectContext, Ended
from chronolet.ports.pods.probes import Attempt, Prober, Reading, Target, Timer
from chronolet.prober import schedule, signals
from chronolet.prober.attempts import asks_again
from chronolet.prober.outside import Outside
from chronolet.prober.patience import Patience
from chronolet.prober.streak import Streak, counts_as
from chronolet.prober.targets import target
from chronolet.prober.wanted import RunProbe
from chronolet.rules.probes.judgement import explained_by, stalled
from chronolet_schemas.prober import Outcome, RawResult, Shortage

FIRST_ATTEMPTS = 2
"""So many look for commands that a killed process has left: the engine may have begun its last one a moment later."""
LATE_SECONDS = 60.0
"""A worker says at most so often that its probes are late."""
GIVEN_UP = "the probe was given up: its container has died, or it is not to be probed any more"


class Tick(NamedTuple):
    """Its time has come; `at` by the monotonic clock."""

    at: float


class Found(NamedTuple):
    """An attempt has ended."""

    reading: Reading


class ProbeWorker(SharedActor):
    """Runs while its effect is outstanding."""

    def __init__(self, effect: RunProbe, context: EffectContext, ended: Ended, outside: Outside) -> None:
        super().__init__(outside.prober)
        self._effect = effect
        self._context = context
        self._ended = ended
        self._outside = outside
        self._prober: Prober = outside.prober
        self._target: Target | str = target(effect.definition, container_id=effect.id, ip=effect.ip)
        self._who = f"{effect.pod}/{effect.container}/{effect.probe}"
        self._period = effect.period_milliseconds / 1000
        self._timeout = float(effect.definition.timeout_seconds)
        self._streak = Streak(effect.definition)
        self._patience = Patience(
            outside.unjudged_limit or 0, count=effect.unjudged, passed=effect.unjudged_milliseconds
        )
        self._timer: Timer | None = None
        self._attempt: Attempt | None = None
        self._due = 0.0
        self._planned = 0.0
        """When its next probe begins, which is up to a part of a period after its time."""
        self._behind = 0.0
        self._given = self._timeout
        self._tries = 0
        self._asked = 0
        self._started = 0.0
        self._late_told = -LATE_SECONDS

    # -- pykka -------------------------------------------------------------------------------------------------------

    def on_start(self) -> None:
        """Set the first tick; from then on the monotonic clock alone counts."""
        now, clock = _now(), time.monotonic()
        age = round((clock - self._outside.began) * 1000)
        first = clock + (schedule.begins_at(self._effect, now, process_age=age) - now) / 1000
        self._tick_at(first, schedule.FIRST_SHARED_SECONDS)

    def on_receive(self, message: Tick | Found) -> None:
        match message:
            case Tick():
                self._tick(message.at)
            case Found():
                self._found(message.reading)

    def on_stop(self) -> None:
        """Nothing is asked any more. What was under way says nothing of the container; that it was asked is kept."""
        if self._timer is not None:
            self._timer.cancel()
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        attempt.cancel()
        if attempt.began:
            self._started = self._due if self._tries == 1 else self._started
            since = time.monotonic() - self._started
            self._write(Reading(result="error", output=GIVEN_UP, started=self._started, seconds=since), since, "error")

    def on_failure(self, _type: type[BaseException] | None, error: BaseException | None, _traceback: Any) -> None:
        """The kernel begins another one, after a pause."""
        self.on_stop()
        if error is not None:
            self._ended(error)

    # -- its times ---------------------------------------------------------------------------------------------------

    def _tick_at(self, when: float, most: float = math.inf) -> None:
        self._planned = schedule.shared(when, self._period, most)
        self._timer = self._prober.at(self._planned, lambda: self.actor_ref.tell(Tick(when)))

    def _tick(self, at: float) -> None:
        now = time.monotonic()
        behind = max(now - self._planned, 0.0)  # waiting for others is no delay of the agent
        self._tick_at(at + self._period * (1 + max(now - at, 0.0) // self._period))
        if self._attempt is not None:  # this one passes
            if not self._attempt.began:
                self._say_late(time.monotonic() - self._due)
            return
        if not self._may():
            return  # the lease may come back; if the effect is not wanted any more, the end is on its way
        self._due, self._behind, self._tries = at, behind, 0
        self._ask()

    def _may(self) -> bool:
        """On any thread, before every call."""
        try:
            self._context.fence("probe")
        except LostOwnership:
            return False
        return True

    # -- one probe ---------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """All tries together have the probe's time: its outcome is never later than that."""
        self._tries += 1
        if isinstance(self._target, str):
            self._found(Reading(result="error", output=self._target, started=time.monotonic(), seconds=0.0))
            return
        self._given = self._timeout if self._tries == 1 else self._left()
        self._asked += 1
        self._attempt = self._prober.begin(
            self._target, self._given, self._tell_found, self._may, who=self._who, first=self._asked <= FIRST_ATTEMPTS
        )

    def _left(self) -> float:
        return self._started + self._timeout - time.monotonic()

    def _tell_found(self, reading: Reading) -> None:
        self.actor_ref.tell(Found(reading))

    def _found(self, reading: Reading) -> None:
        self._attempt = None
        if self._tries == 1:
            self._started = reading.started
            self._look_at_lateness(reading.started - self._due)
        if reading.result == "error" and not self._may():
            return  # it is not tried again, and may have been given up for just that
        if asks_again(reading.result, self._tries) and self._left() > 0:
            self._ask()
        else:
            self._conclude(reading)

    def _look_at_lateness(self, late: float) -> None:
        self._outside.figures.began(self._effect, late)
        if late >= self._period:
            self._say_late(late)

    def _say_late(self, late: float) -> None:
        """More than a period: others are at work for so long that this one was passed over at least once."""
        now = time.monotonic()
        if now - self._late_told >= LATE_SECONDS:
            self._late_told = now
            told = signals.ProbeLate(
                intent=self._effect.intent,
                late_milliseconds=round(late * 1000),
                agent_late_milliseconds=round(self._behind * 1000),
            )
            self._context.send(told)

    def _conclude(self, reading: Reading) -> None:
        since = time.monotonic() - self._started
        delay = replace(reading.delay, late=round(self._behind * 1000))
        reading = replace(reading, delay=delay)
        explained = explained_by(delay, round(self._given * 1000)) if self._may_be_unjudged(reading) else ()
        outcome: Outcome = "unjudged" if explained else reading.result
        self._outside.figures.probed(self._effect, outcome, since)
        at = self._write(reading, since, outcome)
        if outcome == "unjudged":
            self._tell_unjudged(reading, at, since, explained)
        else:
            self._tell_judged(reading, at, since)

    def _may_be_unjudged(self, reading: Reading) -> bool:
        protects = self._outside.unjudged_limit is not None
        return protects and reading.result == "failure" and reading.timed_out and not self._patience.is_over(_clock())

    def _tell_unjudged(self, reading: Reading, at: int, since: float, explained: tuple[Shortage, ...]) -> None:
        now = _clock()
        if self._patience.unjudged(now):
            outcome = signals.ProbeOutcome(
                intent=self._effect.intent,
                outcome="unjudged",
                at=at,
                milliseconds=round(since * 1000),
                output=reading.output,
                short_of=explained,
                stalled_milliseconds=stalled(reading.delay),
                unjudged=self._patience.count,
                unjudged_milliseconds=self._patience.passed(now),
            )
            self._context.send(outcome)

    def _tell_judged(self, reading: Reading, at: int, since: float) -> None:
        succeeded = counts_as(reading.result) == "success"
        recovered = succeeded and self._patience.succeeded()
        short_of = self._short_of(reading)
        if self._streak.is_news(reading.result, at, short=bool(short_of)) or recovered:
            outcome = signals.ProbeOutcome(
                intent=self._effect.intent,
                outcome=reading.result,
                at=at,
                milliseconds=round(since * 1000),
                output=reading.output,
                code=reading.code,
                short_of=short_of,
            )
            self._context.send(outcome)

    def _short_of(self, reading: Reading) -> tuple[Shortage, ...]:
        """Of interest where a container may be stopped for it."""
        kills = self._effect.probe != "Readiness" and reading.result == "failure"
        return self._prober.short_of() if kills and self._outside.unjudged_limit is not None else ()

    def _write(self, reading: Reading, since: float, outcome: Outcome) -> int:
        """For the stream of raw outcomes; when it began, in milliseconds."""
        milliseconds = round(since * 1000)
        at = _now() - milliseconds
        late = self._started - self._due
        self._outside.results.add(_raw(self._effect, reading, outcome, at=at, milliseconds=milliseconds, late=late))
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
    )


def _clock() -> int:
    """In milliseconds; nobody sets it."""
    return time.monotonic_ns() // 1_000_000


def _now() -> int:
    return time.time_ns() // 1_000_000


def begin(outside: Outside) -> Callable[[RunProbe, EffectContext, Ended], Callable[[], None]]:
    """What the kernel calls when a probe is to run; answers with what ends it."""

    def begun(effect: RunProbe, context: EffectContext, ended: Ended) -> Callable[[], None]:
        outside.figures.begins(effect)
        worker = ProbeWorker.start(effect, context, ended, outside)

        def end() -> None:
            worker.stop(block=False)

        return end

    return begun
