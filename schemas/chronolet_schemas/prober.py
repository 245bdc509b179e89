"""What probing found out. Source: pkg/kubelet/prober. An entity is one probe of one container: its key is
`<namespace>/<name>/<container>/<Liveness|Readiness|Startup>`.

Times are milliseconds since the epoch by the agent's clock, unless said. `consecutive` counts equal results in a row
and stops at `threshold`: what goes on beyond it is no event, except once in a while.
"""

from __future__ import annotations

from typing import Literal

from chronolet_schemas.envelope import Event, Message
from chronolet_schemas.podspec import Probe, RestartPolicy
from chronolet_schemas.registry import registered

ProbeName = Literal["Liveness", "Readiness", "Startup"]

ProbeResult = Literal["success", "failure", "unknown"]
"""What counts for a container: a startup probe's is unknown until it has counted to one of its thresholds."""

Outcome = Literal["success", "warning", "failure", "unknown", "error", "unjudged"]
"""What one probe came to. `warning` (a redirect to another host) counts as success, `unknown` as failure. `error`: it
could not be told (three tries), which counts as nothing. `unjudged`: it timed out while the agent or the machine was
stalled, which counts as nothing either (docs/probes.md).
"""

Shortage = Literal["agent", "cpu", "memory", "io"]
"""What the machine was short of: `agent` means that the agent itself did not get to run in time."""


class ProbeEvent(Event, frozen=True, kw_only=True):
    """About one probe of one container of a pod."""

    pod: str
    uid: str
    container: str
    probe: ProbeName


@registered
class ProbeAdded(ProbeEvent, frozen=True, kw_only=True):
    """The probe is wanted, or is to be another one from now on: streaks and results stay.

    `definition` has numbers for ports and a command without references. `restarts` is the policy that holds for its
    container, `field` the container's path in the spec. `change` counts the definitions of this probe.
    """

    definition: Probe
    restarts: RestartPolicy
    period_milliseconds: int
    field: str
    change: int = 0


@registered
class ProbingBegan(ProbeEvent, frozen=True, kw_only=True):
    """Another container, or another run of it (`started_at` by the runtime's clock), is to be probed.

    Not before `from_at`, and not before (Liveness, Readiness) or once (Startup) the container counts as `started`.
    A streak goes on from the container before.
    """

    attempt: int
    id: str
    started_at: int
    ip: str
    from_at: int
    started: bool


@registered
class GateOpened(ProbeEvent, frozen=True, kw_only=True):
    """The container counts as started: liveness and readiness are probed from `from_at` on, startup no more."""

    id: str
    from_at: int


class ProbeCounted(ProbeEvent, frozen=True, kw_only=True):
    """The outcome of a probe that began at `at`, and what it makes of the streak.

    `code` is an exit code or an HTTP status. `held`: the threshold is reached, and this container is probed no more.
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
    """It succeeded. `warning`: with something to tell in `output`."""

    warning: bool = False


@registered
class ProbeFailed(ProbeCounted, frozen=True, kw_only=True):
    """It failed, or (`unknown`) came to nothing that can be called a success."""

    unknown: bool = False


@registered
class ProbeErrored(ProbeEvent, frozen=True, kw_only=True):
    """Nothing could be told, tried three times: the streak is what it was. Said of the first in a row."""

    id: str
    at: int
    milliseconds: int
    output: str = ""


@registered
class ProbeDelayed(ProbeEvent, frozen=True, kw_only=True):
    """The machine cannot run its probes in time: this one begins so late, and is not counted as a failure for it.

    `agent_late_milliseconds`: so much of it the agent did not run, in the rest others were at work.
    """

    id: str
    late_milliseconds: int
    agent_late_milliseconds: int = 0


@registered
class ProbeUnjudged(ProbeEvent, frozen=True, kw_only=True):
    """A probe timed out, and a measured stall explains it: streaks and results stay as they are.

    Written for the first in a row and then every 15 s, until the probe succeeds. `consecutive` of them have passed in
    `for_milliseconds`. This one began at `at` and was stalled for `stalled_milliseconds` by what `short_of` names.
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
    """About the stop of one run of a container that its liveness or startup probe calls for."""

    id: str
    started_at: int


@registered
class KillAsked(KillEvent, frozen=True, kw_only=True):
    """A streak has reached the failure threshold while the machine is short of something: `pleg` decides when the
    container may be stopped (`pleg.ProbeKillReleased`). Until then it is probed on.
    """

    attempt: int
    consecutive: int
    threshold: int
    short_of: tuple[Shortage, ...]
    output: str = ""
    code: int | None = None


@registered
class KillWithdrawn(KillEvent, frozen=True, kw_only=True):
    """The stop is not to be decided by `pleg` any more: the probe succeeded, the container is gone, or the machine is
    not short of anything and the failure counts at once.
    """


@registered
class ResultChanged(ProbeEvent, frozen=True, kw_only=True):
    """What counts for the run of container `id` that began at `started_at` changed: by a streak of `consecutive`
    probes, the last of which said `output`; or (`consecutive` 0) because the container is another one, has ended, or
    its pod is to end.
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
    """The container does not run; another one, or another run of it, will."""

    id: str


@registered
class ProbingEnded(ProbeEvent, frozen=True, kw_only=True):
    """The container is not probed any more: it is being stopped, or has ended for good."""

    id: str


@registered
class ProbeRemoved(ProbeEvent, frozen=True, kw_only=True):
    """The probe is no longer wanted, or its pod is gone. The entity is gone."""


class RawResult(Message, frozen=True, kw_only=True):
    """One entry of the stream `probe_results`, in this order of fields; all are text there.

    `outcome` is an Outcome, `code` empty where there is none, `late_milliseconds` (with a fraction) how much later than
    its time it began; `output` is cut to 1,024 characters. `read_late_milliseconds`: so late the agent noticed how it
    ended; `stalled_milliseconds`: the longest delay of agent or machine meanwhile;
    `agent_late_milliseconds`: so much of its lateness the agent did not run, in the rest others were at work.
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
