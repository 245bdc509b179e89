"""The pod decider. Pure.

Input: desired state (`manifests`), observed state (`pleg`), probe results (`prober`), pods that ran before the log
(`pod.AdoptPod`), effect results (`signals`), replies of the kinds that admit the pod (`devices`, `qos`), and Due.
Output: events of the pod. Next: the host, which runs the effects in `outstanding`. Source: pkg/kubelet/pod_workers.go,
kuberuntime.

A decision has two halves. First `record`, `effect_results` and `observed_containers` derive facts from the message.
Then `plan` is called with the resulting state until it returns no more events. Every event is checked against the
transition table in `phases` and is followed by its KubeEvents from `event_reasons`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, assert_never

from chronolet.kernel.decider import Decider, Due, EffectFailed
from chronolet.pod import phases, signals
from chronolet.pod.admission import admission, adoption, pull_secrets, record
from chronolet.pod.admission.node_policy import Policy, rejection, warning
from chronolet.pod.admission.waiting import REJECTED
from chronolet.pod.evolve.pod import evolve
from chronolet.pod.facts import effect_results, observed_containers
from chronolet.pod.outstanding import outstanding
from chronolet.pod.planning import probing
from chronolet.pod.planning.backoff import KUBELET, Limits
from chronolet.pod.planning.plan import plan
from chronolet.pod.planning.waits import clamped, waits
from chronolet.pod.state import State
from chronolet.pod.status import event_reasons
from chronolet_schemas import devices, manifests, pleg, pod, prober, qos
from chronolet_schemas.envelope import Event

PodMessage = (
    manifests.PodApplied
    | manifests.PodWithdrawn
    | manifests.PullSecretsChanged
    | pleg.ContainerStarted
    | pleg.ContainerDied
    | pod.AdoptPod
    | prober.ResultChanged
    | admission.AdmissionReply
    | signals.EffectResult
    | EffectFailed
    | Due
)
"""Every message that the decider accepts."""

_STARTS = (pod.SandboxStartRequested, pod.DevicesRequested, pod.CgroupRequested)
"""The events that may come first when a sandbox is to be started. The node's policy is checked before any of them."""

ANY_POD = Policy()
"""The policy of a node without labels."""

_MAX_ROUNDS = 100
"""Limit on planning rounds for one message; more would mean that the plan loops."""


def _facts(state: State, message: PodMessage, now: int) -> Sequence[Event]:
    match message:
        case manifests.PodApplied() | manifests.PodWithdrawn() | manifests.PullSecretsChanged() | pod.AdoptPod():
            return _request(state, message, now)
        case pleg.ContainerStarted() | pleg.ContainerDied() | prober.ResultChanged():
            return _observation(state, message, now)
        case signals.EffectResult() | EffectFailed():
            return effect_results.answered(state, message, now)
        case devices.ClaimEvent() | qos.CgroupReady() | qos.PodRefused() | qos.HostPortsAwaited():
            return admission.answered(state, message, now)
        case Due():
            return ()
        case _:
            assert_never(message)


def _request(
    state: State,
    message: manifests.PodApplied | manifests.PodWithdrawn | manifests.PullSecretsChanged | pod.AdoptPod,
    now: int,
) -> Sequence[Event]:
    match message:
        case manifests.PodApplied():
            return record.applied(state, message, now)
        case manifests.PodWithdrawn():
            return record.withdrawn(state, message, now)
        case manifests.PullSecretsChanged():
            return pull_secrets.changed(state, message)
        case _:
            return adoption.adopted(state, message)


def _observation(
    state: State, message: pleg.ContainerStarted | pleg.ContainerDied | prober.ResultChanged, now: int
) -> Sequence[Event]:
    match message:
        case pleg.ContainerStarted():
            return observed_containers.started(state, message)
        case pleg.ContainerDied():
            return observed_containers.died(state, message, now)
        case _:
            return tuple(probing.result_changed(state, message))


class Settings(NamedTuple):
    """The settings on which decisions about pods depend: the kinds that admit or probe pods, the node's policy, and the
    limits of the restart back-off.
    """

    participants: frozenset[str]
    policy: Policy = ANY_POD
    limits: Limits = KUBELET


def _settled(state: State, facts: Sequence[Event], now: int, settings: Settings) -> Sequence[Event]:
    """Return the facts and every event that the pod plans because of them."""
    found: list[Event] = []
    after = _fold(state, facts, found)
    for _ in range(_MAX_ROUNDS):
        steps: Sequence[Event] = ()
        if after is not None:
            steps = _participant_steps(after, settings.participants) or _planned(after, now, settings)
        if after is None or not steps:
            return found
        after = _fold(after, steps, found)
    raise RuntimeError(f"pod {state.pod} ({state.uid}): the plan does not settle after {facts!r}: {found[-5:]!r}")


def _planned(state: State, now: int, settings: Settings) -> Sequence[Event]:
    return _admit(state, plan(clamped(state, now), now, settings.limits), settings.policy)


def _admit(state: State, steps: Sequence[Event], policy: Policy) -> Sequence[Event]:
    """Return the events `steps`, or the pod's rejection if they lead to a sandbox and the node's policy forbids the
    pod. The start of the first sandbox is followed by the policy's warning, if there is one.
    """
    if state.sandbox.phase not in ("absent", "failed", "dead") or not any(isinstance(one, _STARTS) for one in steps):
        return steps
    rejected = rejection(policy, state.manifest)
    if rejected is not None:
        message = f"{REJECTED}{rejected.message}"
        return (pod.PodFailed(pod=state.pod, uid=state.uid, reason=rejected.reason, message=message),)
    first = state.sandbox.phase == "absent" and any(isinstance(one, pod.SandboxStartRequested) for one in steps)
    unmatched = warning(policy, state.manifest) if first else None
    return (*steps, event_reasons.unmatched(state, *unmatched)) if unmatched else steps


def _participant_steps(state: State, participants: frozenset[str]) -> Sequence[Event]:
    """Return AdmissionBegan if the kinds that take part in the pod's admission have changed; otherwise the requests and
    withdrawals of probes that are due.
    """
    return admission.begun(state, participants) or probing.steps(state, participants)


def _due(state: State, settings: Settings) -> int | None:
    """Return when the pod next has something to do: the end of the first wait after which there is a next event; None
    if there is none. 0 (immediately) if the participating kinds have changed since the last decision, because this pod
    might never receive another message.
    """
    if _participant_steps(state, settings.participants):
        return 0
    return next((time for time in sorted(set(waits(state))) if plan(state, time, settings.limits)), None)


def _fold(state: State | None, events: Iterable[Event], found: list[Event]) -> State | None:
    for event in events:
        known = State() if state is None else state
        phases.check(known, event)
        found += (event, *event_reasons.kube_events_for(known, event))
        state = evolve(known, event)
    return state


def decider(participants: frozenset[str], policy: Policy = ANY_POD, limits: Limits = KUBELET) -> Decider[State]:
    """Build the decider of a node with this policy, on which the kinds in `participants` admit or probe pods. Events
    record every decision that depends on these settings, so the settings are not needed to read the log.
    """
    settings = Settings(participants, policy, limits)

    def decide(state: State, message: PodMessage, now: int) -> Sequence[Event]:
        return _settled(state, _facts(state, message, now), now, settings)

    def due(state: State) -> int | None:
        return _due(state, settings)

    return Decider(initial=State(), decide=decide, evolve=evolve, due=due, outstanding=outstanding)


DECIDER = decider(frozenset((probing.KIND,)))
"""The decider of a node with the policy `ANY_POD` on which `prober` is the only participating kind."""
