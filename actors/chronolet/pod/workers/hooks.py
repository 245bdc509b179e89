"""The worker for lifecycle hooks: commands in a container, each started once, and HTTP requests to it.

Input: `wanted.PrepareHook`, `RunHook`. Output: execs and requests; `signals`. Next: `decider`. Source of behaviour and
messages: pkg/kubelet/lifecycle/handlers.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet.kernel.kind import EffectContext
from chronolet.pod import signals, wanted
from chronolet.pod.workers.dependencies import PodDependencies, milliseconds_now
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
    """The worker of PrepareHook and RunHook: one method per effect; stateless."""

    def __init__(self, deps: PodDependencies) -> None:
        self._deps = deps

    def prepare(self, effect: wanted.PrepareHook, context: EffectContext) -> Signal:
        """Create the exec. An exec whose id was not recorded is never started, so creating another one is harmless."""
        try:
            made = self._deps.fenced(context).create_exec(effect.id, effect.command)
        except Refusal as refusal:
            failure = _exec_failed(effect, effect.command, str(refusal), "")
            return signals.HookRefused(subject=effect.subject, intent=effect.intent, message=failure)
        return signals.HookPrepared(subject=effect.subject, intent=effect.intent, exec_id=made)

    def run(self, effect: wanted.RunHook, context: EffectContext) -> Signal:
        """Run the hook, or wait for it if it is already running; return its outcome."""
        try:
            if effect.http is not None:
                return self._request(effect, effect.http, context)
            return self._exec(self._deps.fenced(context), effect, context)
        except Unfinished:
            return signals.HookUnfinished(subject=effect.subject, intent=effect.intent)

    # -- exec ------------------------------------------------------------------------------------------------------

    def _exec(self, runtime: FencedRuntime, effect: wanted.RunHook, context: EffectContext) -> Signal:
        """Poll the exec until it has ended or the runtime no longer knows it; start it if it was never started."""
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
                # `conflict`: an earlier call has started it after all. An unavailable engine may know the outcome once
                # it is available again. Any other refusal is the outcome.
                if refusal.kind not in (*_AWAY, "conflict"):
                    return _done(effect, _exec_failed(effect, effect.command, str(refusal), ""))
            _seconds_left(effect)
            if context.cancelled.wait(_LOOK_SECONDS):
                context.fence("docker.exec_inspect")  # ends this effect without a result

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
            self._deps.requests.get(request, _seconds_left(effect), context.cancelled)
        except RequestFailed as failed:
            _seconds_left(effect)
            context.fence("http.hook")
            # A status of 400 or above is not a failure: the kubelet ignores the status.
            failure = (
                f'HTTP lifecycle hook ({http.path}) for Container "{effect.container}" in Pod "{_pod(effect)}"'
                f" failed - error: {failed}"
            )
            return _done(effect, failure)
        context.done("http.hook")
        return _done(effect)


def _seconds_left(effect: wanted.RunHook) -> float:
    """Return the seconds until the hook's deadline; 0 if it has none. Raises `Unfinished` after the deadline."""
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
    """Format the pod as the kubelet does in messages: name_namespace(uid)."""
    namespace, _, name = effect.pod.partition("/")
    return f"{name}_{namespace}({effect.uid})"


def _done(effect: wanted.RunHook, failure: str = "") -> Signal:
    return signals.HookDone(subject=effect.subject, intent=effect.intent, failed=bool(failure), message=failure)


def _unknown(effect: wanted.RunHook) -> Signal:
    message = f"exec {effect.exec_id}: the runtime no longer knows it; it is not repeated because it may have run"
    return signals.HookOutcomeUnknown(subject=effect.subject, intent=effect.intent, message=message)
