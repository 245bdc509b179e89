"""A pod's decisions. Pure.

Comes in: what the sources want (`manifests`), what runs (`pleg`), how well (`prober`), what ran before the log
(`pod.AdoptPod`), answers of effects (`signals`) and of those that take part in its admission (`devices`), and Due. Goes
out: events of the pod. Next: the host, which runs what `outstanding` names. Source: pkg/kubelet/pod_workers.go,
kuberuntime.

A decision has two halves. `record`, `answers` and `runtime_news` say which facts follow from the message; then `plan`
is asked, with the state after them, what the pod does next, again and again until there is nothing. Every event is
checked against the arrows in `phases` and followed by the KubeEvents that `telling` knows for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from chronolet.kernel.decider import Decider, Due, EffectFailed
from chronolet.pod import answers, phases, runtime_news, signals
from chronolet.pod.admission import admission, adoption, pull_secrets, record
from chronolet.pod.admission.node_policy import Policy, rejection, warning
from chronolet.pod.evolve import evolve
from chronolet.pod.outstanding import outstanding
from chronolet.pod.planning import probing
from chronolet.pod.planning.plan import plan
from chronolet.pod.planning.waits import clamped, waits
from chronolet.pod.state import State
from chronolet.pod.status import event_reasons
from chronolet_schemas import devices, manifests, pleg, pod, prober, qos
from chronolet_schemas.envelope import Event

Said = (
    manifests.PodApplied
    | manifests.PodWithdrawn
    | manifests.PullSecretsChanged
    | pleg.ContainerStarted
    | pleg.ContainerDied
    | pod.AdoptPod
    | prober.ResultChanged
    | admission.Answer
    | signals.Answer
    | EffectFailed
    | Due
)
"""All that a pod is told."""

_TO_START = (pod.SandboxStartRequested, pod.DevicesRequested, pod.CgroupRequested)
"""With one of these a pod that has no sandbox sets out to get one."""

ANY_POD = Policy()
"""Of a node without labels."""

_MOST_ROUNDS = 100
"""More steps without anything happening outside would be a circle in the plan."""


def _facts(state: State, message: Said, now: int) -> Sequence[Event]:
    match message:
        case manifests.PodApplied() | manifests.PodWithdrawn() | manifests.PullSecretsChanged() | pod.AdoptPod():
            return _wish(state, message, now)
        case pleg.ContainerStarted() | pleg.ContainerDied() | prober.ResultChanged():
            return _news(state, message, now)
        case signals.Answer() | EffectFailed():
            return answers.answered(state, message, now)
        case devices.ClaimEvent() | qos.CgroupReady() | qos.PodRefused() | qos.HostPortsAwaited():
            return admission.answered(state, message, now)
        case Due():
            return ()
        case _:
            assert_never(message)


def _wish(
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


def _news(
    state: State, message: pleg.ContainerStarted | pleg.ContainerDied | prober.ResultChanged, now: int
) -> Sequence[Event]:
    match message:
        case pleg.ContainerStarted():
            return runtime_news.started(state, message)
        case pleg.ContainerDied():
            return runtime_news.died(state, message, now)
        case _:
            return tuple(probing.heard(state, message))


def _settled(
    state: State, facts: Sequence[Event], now: int, takes_part: frozenset[str], policy: Policy
) -> Sequence[Event]:
    """The facts, and all that the pod does because of them."""
    found: list[Event] = []
    after = _fold(state, facts, found)
    for _ in range(_MOST_ROUNDS):
        steps: Sequence[Event] = ()
        if after is not None:
            steps = _of_those_who_take_part(after, takes_part) or _let_in(after, plan(clamped(after, now), now), policy)
        if after is None or not steps:
            return found
        after = _fold(after, steps, found)
    raise RuntimeError(f"pod {state.pod} ({state.uid}): no end of steps after {facts!r}: {found[-5:]!r}")


def _let_in(state: State, steps: Sequence[Event], policy: Policy) -> Sequence[Event]:
    """The steps; in their place the pod's rejection, where they lead to a sandbox that the node does not take."""
    if state.sandbox.phase not in ("absent", "failed", "dead") or not any(isinstance(one, _TO_START) for one in steps):
        return steps
    rejected = rejection(policy, state.manifest)
    if rejected is not None:
        said = f"{admission.REJECTED}{rejected.message}"
        return (pod.PodFailed(pod=state.pod, uid=state.uid, reason=rejected.reason, message=said),)
    first = state.sandbox.phase == "absent" and any(isinstance(one, pod.SandboxStartRequested) for one in steps)
    unmatched = warning(policy, state.manifest) if first else None
    return (*steps, event_reasons.unmatched(state, *unmatched)) if unmatched else steps


def _of_those_who_take_part(state: State, takes_part: frozenset[str]) -> Sequence[Event]:
    """What is to be said to them, or of them."""
    return admission.begun(state, takes_part) or probing.steps(state, takes_part)


def _due(state: State, takes_part: frozenset[str]) -> int | None:
    """When the next wait ends at whose end there is something to do. At once where others take part than did when the
    pod was decided last, for nothing else may ever happen to it.
    """
    if _of_those_who_take_part(state, takes_part):
        return 0
    return next((time for time in sorted(set(waits(state))) if plan(state, time)), None)


def _fold(state: State | None, events: Iterable[Event], found: list[Event]) -> State | None:
    for event in events:
        known = State() if state is None else state
        phases.check(known, event)
        found += (event, *event_reasons.tell(known, event))
        state = evolve(known, event)
    return state


def decider(takes_part: frozenset[str], policy: Policy = ANY_POD) -> Decider[State]:
    """The decider of a node in which these kinds take part in admission, or probe, and which takes pods by this policy.
    Once decided it is an event, so that what is read from the log needs no setting.
    """

    def decide(state: State, message: Said, now: int) -> Sequence[Event]:
        return _settled(state, _facts(state, message, now), now, takes_part, policy)

    def due(state: State) -> int | None:
        return _due(state, takes_part)

    return Decider(initial=State(), decide=decide, evolve=evolve, due=due, outstanding=outstanding)


DECIDER = decider(frozenset((probing.KIND,)))
"""Of a node that lets pods in as they come, and probes them."""
