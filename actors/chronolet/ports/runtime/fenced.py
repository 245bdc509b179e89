"""Wraps a `Runtime` for one effect: checks before each call that the effect may still act. Every call passes a crash
point before it; a call that changes something also passes one after it.

Input: calls from an effect's worker. Output: the same calls to a `Runtime`, and a span for each of them except `wait`
and `forget_endpoint`. Next: the runtime's adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from chronolet.kernel.kind import EffectContext
from chronolet.ports.runtime.runtime import (
    BuiltImage,
    ContainerSpec,
    ContainerState,
    Engine,
    ExecResult,
    ExecState,
    ImageState,
    PullStep,
    Runtime,
    SandboxSpec,
)
from chronolet.ports.runtime.streams import Stream
from chronolet.ports.spans import NoSpans, Spans, measured
from chronolet.rules.names.registry_keys import Credential


class FencedRuntime:
    """Forwards the calls of one run of one effect to a `Runtime`. Raises the runtime's errors, and the kernel's
    `LostOwnership` if the effect may no longer act.
    """

    def __init__(self, runtime: Runtime, context: EffectContext, spans: Spans | None = None) -> None:
        self._runtime = runtime
        self._context = context
        self._spans = spans or NoSpans()

    @contextmanager
    def _call(self, name: str) -> Iterator[None]:
        """Fence and measure one call; the span is recorded even if the call raises."""
        self._context.fence(name)
        with measured(self._spans, self._context, name):
            yield

    @contextmanager
    def _change(self, name: str) -> Iterator[None]:
        """Like `_call`, for a call that changes something: passes a crash point after the call."""
        with self._call(name):
            yield
        self._context.done(name)

    def create_sandbox(self, spec: SandboxSpec) -> str:
        with self._change("docker.create"):
            return self._runtime.create_sandbox(spec)

    def create_container(self, spec: ContainerSpec) -> str:
        with self._change("docker.create"):
            return self._runtime.create_container(spec)

    def start(self, container_id: str) -> None:
        with self._change("docker.start"):
            self._runtime.start(container_id)

    def kill(self, container_id: str, signal: str, sent: Callable[[], bool] = lambda: False) -> None:
        """Call `sent` to send a signal; if it returns False, send the signal through the runtime."""
        with self._change("docker.kill"):
            if not sent():
                self._runtime.kill(container_id, signal)

    def remove(self, container_id: str) -> None:
        with self._change("docker.remove"):
            self._runtime.remove(container_id)

    def remove_dead(self, container_id: str) -> None:
        with self._change("docker.remove"):
            self._runtime.remove_dead(container_id)

    def forget_endpoint(self, name: str) -> None:
        self._context.fence("docker.disconnect")
        self._runtime.forget_endpoint(name)
        self._context.done("docker.disconnect")

    def pull(
        self,
        reference: str,
        progress: Callable[[PullStep], None] = lambda _: None,
        *,
        credential: Credential | None = None,
        opened: Callable[[Stream], None] = lambda _: None,
        silence_seconds: float = 120.0,
    ) -> ImageState:
        with self._change("docker.pull"):
            return self._runtime.pull(
                reference, progress, credential=credential, opened=opened, silence_seconds=silence_seconds
            )

    def import_image(self, reference: str, image: BuiltImage) -> None:
        with self._change("docker.import"):
            self._runtime.import_image(reference, image.archive, image.changes)

    def create_exec(self, container_id: str, command: Sequence[str]) -> str:
        with self._change("docker.exec_create"):
            return self._runtime.create_exec(container_id, command)

    def run_exec(self, exec_id: str, timeout_seconds: float = 0.0) -> ExecResult:
        with self._change("docker.exec_start"):
            return self._runtime.run_exec(exec_id, timeout_seconds, cancelled=self._context.cancelled)

    # Read-only calls have no crash point after them.

    def engine(self) -> Engine:
        with self._call("docker.version"):
            return self._runtime.engine()

    def inspect(self, container_id_or_name: str) -> ContainerState | None:
        with self._call("docker.inspect"):
            return self._runtime.inspect(container_id_or_name)

    def wait(self, container_id: str, timeout_seconds: float) -> bool:
        # Not measured: a wait lasts as long as the container and is repeated every second.
        self._context.fence("docker.wait")
        return self._runtime.wait(container_id, timeout_seconds)

    def list(self, labels: Mapping[str, str]) -> Sequence[ContainerState]:
        with self._call("docker.list"):
            return self._runtime.list(labels)

    def image(self, reference: str) -> ImageState | None:
        with self._call("docker.image"):
            return self._runtime.image(reference)

    def inspect_exec(self, exec_id: str) -> ExecState | None:
        with self._call("docker.exec_inspect"):
            return self._runtime.inspect_exec(exec_id)

    def logs(self, container_id: str, tail: int) -> Iterator[tuple[str, bytes]]:
        with self._call("docker.logs"):
            return self._runtime.logs(container_id, follow=False, tail=tail, since=None, timestamps=False)
