"""A container's postStart and preStop hooks. Pure.

Input: State, a container, now; an effect's result. Output: `pod.HookRequested`, `pod.HookPrepared`, `pod.HookEnded`;
the effects PrepareHook and RunHook. Next: `plan` and `termination` use a hook's next step, `outstanding` its effect,
`effect_results` the facts from a result. Source: pkg/kubelet/lifecycle/handlers.go, kuberuntime_container.go
(startContainer, executePreStopHook).

An exec is created first, then recorded by HookPrepared, and only then started: it never starts twice, whichever process
is killed. An HTTP request may be repeated. A sleep needs no effect: the decider waits. A hook ends when its container
ends, and a postStart hook also ends when the container is to be stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chronolet.pod import signals, wanted
from chronolet.pod.state import Container, Hook, State
from chronolet.rules.names.ports import port_number
from chronolet.rules.refs import ContainerRef, EffectRef
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import HTTPGetAction, LifecycleHandler

_HTTP_PORT = 80

HookEffect = wanted.PrepareHook | wanted.RunHook


class _End(NamedTuple):
    outcome: pod.HookOutcome
    message: str = ""


def handler_of(state: State, container: str, hook: pod.HookName) -> LifecycleHandler | None:
    """Return the hook's handler in the current spec; None if the container has no such hook."""
    lifecycle = state.definition(container).lifecycle
    if lifecycle is None:
        return None
    return lifecycle.post_start if hook == "PostStart" else lifecycle.pre_stop


def steps(state: State, one: Container, now: int) -> Iterator[Event]:
    """Yield the next event of the current hook: its request, or an end that no effect reports."""
    handler = one.stop.pre_stop if one.stop else one.post_start
    ref = ContainerRef(pod=state.pod, uid=state.uid, container=one.name, attempt=one.attempt, id=one.id)
    if handler is not None:
        hook: pod.HookName = "PreStop" if one.stop else "PostStart"
        yield pod.HookRequested(hook=hook, handler=handler, requested_at=now, deadline=_deadline(one), **ref)
    elif one.hook is not None and (end := _end(state, one, one.hook, now)) is not None:
        yield pod.HookEnded(hook=one.hook.hook, outcome=end.outcome, message=end.message, **ref)


def _end(state: State, one: Container, hook: Hook, now: int) -> _End | None:
    """Return how the hook ends if no effect's result is needed to end it; None if it does not end now."""
    deadline = _deadline(one)
    if deadline and now >= deadline:
        return _End("Unfinished")
    handler = hook.handler
    if handler.sleep is not None:
        return _End("Succeeded") if now >= hook.sleeps_until else None
    if handler.http_get is not None:
        port = _port(state, one, handler.http_get)
        missing = f"couldn't find port: {handler.http_get.port} in the container's ports"
        return None if port else _End("Failed", missing)
    return None if handler.exec is not None else _End("Failed", "invalid handler: neither exec, httpGet nor sleep")


def _deadline(one: Container) -> int:
    """Return the deadline of the hook: the end of the grace period for preStop; 0 (no deadline) for postStart."""
    return one.stop.deadline if one.stop else 0


class _HookRef(ContainerRef):
    subject: str
    hook: pod.HookName


def effects(state: State, one: Container) -> Iterator[HookEffect]:
    """Yield the effect of the current hook; none if there is no hook, or if it needs no effect."""
    hook = one.hook
    if hook is None:
        return
    handler = hook.handler
    ref = _HookRef(
        subject=f"hook/{one.name}",
        hook=hook.hook,
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=one.attempt,
        id=one.id,
    )
    if handler.exec is not None and hook.exec_id:
        yield wanted.RunHook(
            intent=f"{hook.hook}/{one.id}/{hook.exec_id}",
            exec_id=hook.exec_id,
            command=handler.exec.command,
            deadline=_deadline(one),
            **ref,
        )
    elif handler.exec is not None:
        yield wanted.PrepareHook(intent=f"{hook.hook}/{one.id}", command=handler.exec.command, **ref)
    elif handler.http_get is not None and (port := _port(state, one, handler.http_get)):
        yield wanted.RunHook(
            intent=f"{hook.hook}/{one.id}",
            http=handler.http_get,
            port=port,
            sandbox_ip=state.reached_at,
            deadline=_deadline(one),
            **ref,
        )


def _port(state: State, one: Container, request: HTTPGetAction) -> int:
    """Return the request's port number: as given, or that of the container's port with the given name. 80 if no port is
    given; 0 if no port has that name.
    """
    if request.port is None or request.port == "":
        return _HTTP_PORT
    return port_number(request.port, state.definition(one.name).ports)


def answered(state: State, effect: HookEffect, answer: signals.EffectResult, _now: int) -> Sequence[Event]:
    """Return the events that follow from a worker's result."""
    ref = ContainerRef(pod=state.pod, uid=effect.uid, container=effect.container, attempt=effect.attempt, id=effect.id)
    match answer:
        case signals.HookPrepared():
            return (pod.HookPrepared(hook=effect.hook, exec_id=answer.exec_id, **ref),)
        case signals.HookDone():
            end = _End("Failed" if answer.failed else "Succeeded", answer.message)
        case signals.HookUnfinished():
            end = _End("Unfinished")
        case signals.HookRefused():
            end = _End("Failed", answer.message)
        case signals.HookOutcomeUnknown():
            end = _End("Unknown", answer.message)
        case _:
            return ()
    return (pod.HookEnded(hook=effect.hook, outcome=end.outcome, message=end.message, **ref),)


def refusal(effect: HookEffect, message: str) -> signals.EffectResult:
    """Return the result to record for a worker that raised an error or timed out: it may have started the exec."""
    to = EffectRef(subject=effect.subject, intent=effect.intent)
    if isinstance(effect, wanted.PrepareHook):
        return signals.HookRefused(message=message, **to)
    if effect.exec_id:
        return signals.HookOutcomeUnknown(message=message, **to)
    return signals.HookDone(failed=True, message=message, **to)
