"""Results of probing. Source: pkg/kubelet/prober.

An entity is one probe of one container: its key is `<namespace>/<name>/<container>/<Liveness|Readiness|Startup>`. Times
are milliseconds since the epoch according to the agent's clock, unless noted. `consecutive` counts equal results in a
row and stops at `threshold`: results beyond it are recorded only occasionally.
"""

from __future__ import annotations

from typing import Literal

from chronolet_schemas.envelope import Event, Message
from chronolet_schemas.podspec import Probe, RestartPolicy
from chronolet_schemas.registry import registered

ProbeName = Literal["Liveness", "Readiness", "Startup"]

ProbeResult = Literal["success", "failure", "unknown"]
"""The state that counts for a container. For a startup probe, it is unknown until the probe reaches one of its
thresholds.
"""

Outcome = Literal["success", "warning", "failure", "unknown", "error", "unjudged"]
"""The outcome of one probe. `warning` (a redirect to another host) counts as success, `unknown` as failure. `error`:
the probe could not be made in three attempts, and does not count. `unjudged`: it timed out while the agent, the
engine or the machine was stalled, and does not count either (docs/probes.md).
"""

Shortage = Literal["agent", "cpu", "memory", "io"]
"""What the machine was short of; `agent`: the agent itself was not scheduled in time."""


class ProbeEvent(Event, frozen=True, kw_only=True):
    """Base class for events about one probe of one container of a pod."""

    pod: str
    uid: str
    container: str
    probe: ProbeName


@registered
class ProbeAdded(ProbeEvent, frozen=True, kw_only=True):
    """The probe is requested, or has a new definition from now on. Its streaks and results are kept, except for another
    pod of the same name.

    `definition` has numeric ports and an expanded command. `restarts` is the container's restart policy, `field` the
    container's path in the spec, such as `spec.containers{app}`. `change` counts the definitions of this probe.
    """

    definition: Probe
    restarts: RestartPolicy
    period_milliseconds: int
    field: str
    change: int = 0


@registered
class ProbingBegan(ProbeEvent, frozen=True, kw_only=True):
    """The probe now targets another container, or another run of the same one (`started_at`, according to the runtime's
    clock).

    Probing starts at `from_at`: liveness and readiness only once the container counts as `started`, startup only before
    that. A streak continues from the previous container.
    """

    attempt: int
    id: str
    started_at: int
    ip: str
    from_at: int
    started: bool


@registered
class GateOpened(ProbeEvent, frozen=True, kw_only=True):
    """The container counts as started: liveness and readiness are probed from `from_at` on, startup no longer."""

    id: str
    from_at: int


class ProbeCounted(ProbeEvent, frozen=True, kw_only=True):
    """The outcome of a probe that began at `at`, and its effect on the streak.

    `code` is an exit code or an HTTP status. `held`: the threshold has been reached, and this container is no longer
    probed.
    """

    id: str
    consecutive: int
    threshold: int
    at: int
    milliseconds: int
    output: str = ""
    code: int | None = None
    held: bool = False


@registered
class ProbeSucceeded(ProbeCounted, frozen=True, kw_only=True):
    """The probe succeeded. If `warning` is True, `output` contains a warning."""

    warning: bool = False


@registered
class ProbeFailed(ProbeCounted, frozen=True, kw_only=True):
    """The probe failed, or its outcome was unknown (`unknown`), which counts as a failure."""

    unknown: bool = False


@registered
class ProbeErrored(ProbeEvent, frozen=True, kw_only=True):
    """The probe could not be made in three attempts: the streak is unchanged. Recorded for the first of a series, and
    again every five minutes while the errors continue.
    """

    id: str
    at: int
    milliseconds: int
    output: str = ""


@registered
class ProbeDelayed(ProbeEvent, frozen=True, kw_only=True):
    """The machine cannot run its probes in time: this one began late, which does not count as a failure.

    `agent_late_milliseconds`: the part of the delay in which the agent was not running; during the remaining time other
    probes were running.
    """

    id: str
    late_milliseconds: int
    agent_late_milliseconds: int = 0


@registered
class ProbeUnjudged(ProbeEvent, frozen=True, kw_only=True):
    """A probe timed out, and a measured stall explains it: streaks and results are unchanged.

    Recorded for the first of a series and then at intervals of at least 15 s, until the probe succeeds or its time-outs
    count as failures. The series so far has `consecutive` such probes in `for_milliseconds`. This one began at `at` and
    was stalled for `stalled_milliseconds` by a shortage of `short_of`.
    """

    id: str
    at: int
    milliseconds: int
    consecutive: int
    for_milliseconds: int
    stalled_milliseconds: int
    short_of: tuple[Shortage, ...] = ()
    output: str = ""


class KillEvent(ProbeEvent, frozen=True, kw_only=True):
    """Base class for events about a kill: stopping one run of a container because of its liveness or startup probe."""

    id: str
    started_at: int


@registered
class KillAsked(KillEvent, frozen=True, kw_only=True):
    """A streak reached the failure threshold while the machine was short of a resource: `pleg` decides when to stop the
    container.

    Probing continues until `pleg.ProbeKillReleased`.
    """

    attempt: int
    consecutive: int
    threshold: int
    short_of: tuple[Shortage, ...]
    output: str = ""
    code: int | None = None


@registered
class KillWithdrawn(KillEvent, frozen=True, kw_only=True):
    """`pleg` no longer needs to decide on the kill.

    The probe succeeded, was changed or was removed; the container's run ended or is being stopped; or the machine has
    recovered, and the failure counts immediately.
    """


@registered
class ResultChanged(ProbeEvent, frozen=True, kw_only=True):
    """The result for the run of container `id` that began at `started_at` has changed.

    The change is due either to a streak of `consecutive` probes, the last of which returned `output`, or (`consecutive`
    0) to the container: it was replaced, it has ended, or its pod is terminating.
    """

    attempt: int
    id: str
    started_at: int
    result: ProbeResult
    consecutive: int = 0
    threshold: int = 0
    output: str = ""
    code: int | None = None


@registered
class ProbingPaused(ProbeEvent, frozen=True, kw_only=True):
    """Probing is paused: the container is not running, but it or its successor will run again."""

    id: str


@registered
class ProbingEnded(ProbeEvent, frozen=True, kw_only=True):
    """The container is no longer probed: it is being stopped, or has ended permanently."""

    id: str


@registered
class ProbeRemoved(ProbeEvent, frozen=True, kw_only=True):
    """The probe is no longer requested, or its pod no longer exists. The entity is removed."""


class RawResult(Message, frozen=True, kw_only=True):
    """One entry of the stream `probe_results`, with fields in this order; in the stream, all values are text.

    `outcome` is an Outcome; `code` is empty if there is none; `late_milliseconds` (fractional) is how late the probe
    started; `output` is truncated to 1,024 characters. `read_late_milliseconds`: how late the agent noticed the probe's
    end; `stalled_milliseconds`: the longest delay of agent or machine during the probe; `agent_late_milliseconds`: the
    part of `late_milliseconds` in which the agent was not running; during the remaining time other probes were running.
    `attempt`: the number of the container's run, from 0.
    """

    pod: str
    uid: str
    container: str
    probe: str
    id: str
    outcome: str
    code: str
    at: str
    milliseconds: str
    late_milliseconds: str
    output: str
    read_late_milliseconds: str = ""
    stalled_milliseconds: str = ""
    agent_late_milliseconds: str = ""
    attempt: str = ""
