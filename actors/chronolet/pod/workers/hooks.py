"""Lifecycle hooks: commands in a container, each begun once, and HTTP requests to it.

Comes in: `wanted.PrepareHook`, `RunHook`. Goes out: execs and requests; `signals`. Next: `decider`. Answers to
pkg/kubelet/lifecycle/handlers.go, whose words the messages are.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet.kernel.kind import EffectContext
from chronolet.pod import signals, wanted
from chronolet.pod.workers.outside import Outside, milliseconds_now
from chronolet.ports.pods.requests import Request, RequestFailed
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.runtime import Refusal
from chronolet_schemas.envelope import Signal
from chronolet_schemas.podspec import HTTPGetAction

_LOOK_SECONDS = 0.5
_AWAY = ("unavailable", "timeout")


class Unfinished(Exception):  # noqa: N818 - an answer, not an error
    """The hook's deadline has passed."""


class HookWorker:
    """One method an effect; no state of its own."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def prepare(self, effect: wanted.PrepareHook, context: EffectContext) -> Signal:
        """Make the exec. One that was made before and not told of is never begun, so another one does no harm."""
        try:
            made = self._outside.fenced(context).create_exec(effect.id, effect.command)
        except Refusal as refusal:
            said = _exec_failed(effect, effect.command, str(refusal), "")
            return signals.HookRefused(subject=effect.subject, intent=effect.intent, message=said)
        return signals.HookPrepared(subject=effect.subject, intent=effect.intent, exec_id=made)

    def run(self, effect: wanted.RunHook, context: EffectContext) -> Signal:
        """Its outcome, whoever began it."""
        try:
            if effect.http is not None:
                return self._request(effect, effect.http, context)
            return self._exec(self._outside.fenced(context), effect, context)
        except Unfinished:
            return signals.HookUnfinished(subject=effect.subject, intent=effect.intent)

    # -- exec ------------------------------------------------------------------------------------------------------

    def _exec(self, runtime: FencedRuntime, effect: wanted.RunHook, context: EffectContext) -> Signal:
        """Looks until the exec has ended or is forgotten; begins it where it was never begun."""
        while True:
            try:
                found = runtime.inspect_exec(effect.exec_id)
                if found is None:
                    return _unknown(effect)
                if found.exit_code is not None:
                    return _exec_ended(effect, found.exit_code, "")
                if not found.running:
                    result = runtime.run_exec(effect.exec_id, _seconds_left(effect))
                    return _exec_ended(effect, result.exit_code, result.output.decode(errors="replace"))
            except Refusal as refusal:
                if refusal.kind == "not_found":
                    return _unknown(effect)
                # `conflict`: an earlier call of ours began it after all. An engine that is away may know when it is
                # back. Anything else is what running it came to.
                if refusal.kind not in (*_AWAY, "conflict"):
                    return _done(effect, _exec_failed(effect, effect.command, str(refusal), ""))
            _seconds_left(effect)
            if context.cancelled.wait(_LOOK_SECONDS):
                context.fence("docker.exec_inspect")  # ends this effect without an answer

    # -- HTTP ------------------------------------------------------------------------------------------------------

    def _request(self, effect: wanted.RunHook, http: HTTPGetAction, context: EffectContext) -> Signal:
        request = Request(
            scheme="https" if http.scheme == "HTTPS" else "http",
            host=http.host or effect.sandbox_ip,
            port=effect.port,
            path=http.path,
            headers=tuple((header.name, header.value) for header in http.http_headers),
        )
        context.fence("http.hook")
        try:
            self._outside.requests.get(request, _seconds_left(effect), context.cancelled)
        except RequestFailed as failed:
            _seconds_left(effect)
            context.fence("http.hook")
            # A status of 400 and above is no failure: the kubelet does not look at it.
            said = (
                f'HTTP lifecycle hook ({http.path}) for Container "{effect.container}" in Pod "{_pod(effect)}"'
                f" failed - error: {failed}"
            )
            return _done(effect, said)
        context.done("http.hook")
        return _done(effect)


def _seconds_left(effect: wanted.RunHook) -> float:
    """Until its deadline; 0 where it has none. Raises `Unfinished`."""
    if not effect.deadline:
        return 0.0
    left = (effect.deadline - milliseconds_now()) / 1000
    if left <= 0:
        raise Unfinished
    return left


def _exec_ended(effect: wanted.RunHook, exit_code: int, output: str) -> Signal:
    if not exit_code:
        return _done(effect)
    error = f"command '{' '.join(effect.command)}' exited with {exit_code}: {output}"
    return _done(effect, _exec_failed(effect, effect.command, error, output))


def _exec_failed(effect: wanted.PrepareHook | wanted.RunHook, command: Sequence[str], error: str, output: str) -> str:
    return (
        f'Exec lifecycle hook ([{" ".join(command)}]) for Container "{effect.container}" in Pod "{_pod(effect)}"'
        f' failed - error: {error}, message: "{output}"'
    )


def _pod(effect: wanted.PodEffect) -> str:
    """As the kubelet writes a pod in its messages."""
    namespace, _, name = effect.pod.partition("/")
    return f"{name}_{namespace}({effect.uid})"


def _done(effect: wanted.RunHook, failure: str = "") -> Signal:
    return signals.HookDone(subject=effect.subject, intent=effect.intent, failed=bool(failure), message=failure)


def _unknown(effect: wanted.RunHook) -> Signal:
    said = f"exec {effect.exec_id}: the runtime has forgotten it; it is not run again, for it may have run"
    return signals.HookOutcomeUnknown(subject=effect.subject, intent=effect.intent, message=said)
