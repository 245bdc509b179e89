"""A runtime wrapper that counts and times calls.

Input: a runtime, the metrics. Output: a runtime. Next: `node.composition.parts` builds it, `node.composition.kinds`
passes it to the actors. Operation names are the kubelet's (pkg/kubelet/kuberuntime/instrumented_services.go).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from chronolet.node.metrics.metrics import Metrics
from chronolet.node.stats.running import Running
from chronolet.pleg.health import illness
from chronolet.ports.runtime.labels import CONTAINER_NAME, POD_UID
from chronolet.ports.runtime.runtime import (
    ContainerSpec,
    ContainerState,
    Engine,
    ExecResult,
    ExecState,
    ImageState,
    Notice,
    PullStep,
    Runtime,
    SandboxSpec,
)
from chronolet.ports.runtime.streams import Attachment, Stream
from chronolet.rules.names.names import SANDBOX
from chronolet.rules.names.registry_keys import Credential

S = TypeVar("S", SandboxSpec, ContainerSpec)


class MeasuredRuntime:
    """Counts and times most calls to the wrapped runtime, and records in `running` which containers are running."""

    def __init__(self, runtime: Runtime, metrics: Metrics, running: Running | None = None) -> None:
        self._runtime = runtime
        self._operation = metrics.operation
        self._running = running or Running()

    def engine(self) -> Engine:
        with self._operation("version"):
            return self._runtime.engine()

    def create_sandbox(self, spec: SandboxSpec) -> str:
        return self._created("run_podsandbox", self._runtime.create_sandbox, spec)

    def create_container(self, spec: ContainerSpec) -> str:
        return self._created("create_container", self._runtime.create_container, spec)

    def _created(self, operation: str, create: Callable[[S], str], spec: S) -> str:
        with self._operation(operation):
            made = create(spec)
        self._running.created(made, spec)
        return made

    def start(self, container_id: str) -> None:
        with self._operation("start_container"):
            self._runtime.start(container_id)
        self._running.started(container_id)

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        with self._operation("container_status"):
            return self._runtime.inspect(container_id_or_name, timeout_seconds=timeout_seconds)

    def wait(self, container_id: str, timeout_seconds: float) -> bool:
        # Not timed: it lasts as long as the container runs.
        return self._runtime.wait(container_id, timeout_seconds)

    def kill(self, container_id: str, signal: str = "KILL") -> None:
        with self._operation("kill_container"):
            self._runtime.kill(container_id, signal)

    def remove(self, container_id: str) -> None:
        self._removed(self._runtime.remove, container_id)

    def remove_dead(self, container_id: str) -> None:
        self._removed(self._runtime.remove_dead, container_id)

    def _removed(self, remove: Callable[[str], None], container_id: str) -> None:
        with self._operation("remove_container"):
            remove(container_id)
        self._running.removed(container_id)

    def forget_endpoint(self, name: str) -> None:
        with self._operation("remove_podsandbox"):
            self._runtime.forget_endpoint(name)

    def list(self, labels: Mapping[str, str]) -> Sequence[ContainerState]:
        with self._operation("list_containers"):
            return self._runtime.list(labels)

    def follow(
        self, labels: Mapping[str, str], since: int | None, opened: Callable[[Stream], None]
    ) -> Iterator[Notice]:
        # Not timed: it lasts as long as the stream.
        return self._runtime.follow(labels, since, opened)

    def written_bytes(self, container_id: str) -> int:
        with self._operation("container_status"):
            return self._runtime.written_bytes(container_id)

    def image(self, reference: str) -> ImageState | None:
        with self._operation("image_status"):
            return self._runtime.image(reference)

    def pull(
        self,
        reference: str,
        progress: Callable[[PullStep], None],
        *,
        credential: Credential | None = None,
        opened: Callable[[Stream], None] = lambda _: None,
        silence_seconds: float = 120.0,
    ) -> ImageState:
        with self._operation("pull_image"):
            return self._runtime.pull(
                reference, progress, credential=credential, opened=opened, silence_seconds=silence_seconds
            )

    def import_image(self, reference: str, archive: bytes, changes: Sequence[str]) -> str:
        with self._operation("import_image"):
            return self._runtime.import_image(reference, archive, changes)

    def logs(
        self, container_id: str, *, follow: bool, tail: int | None, since: int | None, timestamps: bool
    ) -> Iterator[tuple[str, bytes]]:
        return self._runtime.logs(container_id, follow=follow, tail=tail, since=since, timestamps=timestamps)

    def log_path(self, container_id: str) -> str:
        return self._runtime.log_path(container_id)

    def create_exec(
        self,
        container_id: str,
        command: Sequence[str],
        *,
        tty: bool = False,
        stdin: bool = False,
        env: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        with self._operation("create_exec"):
            return self._runtime.create_exec(container_id, command, tty=tty, stdin=stdin, env=env)

    def inspect_exec(self, exec_id: str) -> ExecState | None:
        with self._operation("exec_status"):
            return self._runtime.inspect_exec(exec_id)

    def find_execs(self, container_id: str, mark: tuple[str, str]) -> Sequence[str]:
        with self._operation("container_status"):
            return self._runtime.find_execs(container_id, mark)

    def exec_seconds(self, exec_id: str) -> float | None:
        with self._operation("exec_status"):
            return self._runtime.exec_seconds(exec_id)

    def run_exec(
        self,
        exec_id: str,
        timeout_seconds: float = 0.0,
        *,
        cancelled: threading.Event | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> ExecResult:
        with self._operation("exec_sync"):
            return self._runtime.run_exec(exec_id, timeout_seconds, cancelled=cancelled, meanwhile=meanwhile)

    def kill_exec(self, exec_id: str) -> None:
        self._runtime.kill_exec(exec_id)

    def attach_exec(self, exec_id: str, *, tty: bool = False) -> Attachment:
        with self._operation("exec"):
            return self._runtime.attach_exec(exec_id, tty=tty)

    def resize_exec(self, exec_id: str, rows: int, columns: int) -> None:
        self._runtime.resize_exec(exec_id, rows, columns)

    def close(self) -> None:
        self._runtime.close()


def _monotonic() -> int:
    return time.monotonic_ns() // 1_000_000


class RelistedRuntime(MeasuredRuntime):
    """Runtime wrapper for pleg: each listing counts as a relist, records which containers are running, and shows that
    PLEG is healthy.

    `threshold`: maximum age of the last successful relist, in milliseconds; `monotonic`: a clock in milliseconds.
    Source: pkg/kubelet/pleg/generic.go (Healthy, updateRunningPodAndContainerMetrics).
    """

    def __init__(
        self,
        runtime: Runtime,
        metrics: Metrics,
        threshold: int,
        running: Running | None = None,
        *,
        monotonic: Callable[[], int] = _monotonic,
    ) -> None:
        super().__init__(runtime, metrics, running)
        self._metrics = metrics
        self._threshold = threshold
        self._monotonic = monotonic
        self._last_seen: int | None = None
        self._began = monotonic()

    def list(self, labels: Mapping[str, str]) -> Sequence[ContainerState]:
        began_at, began = self._monotonic(), time.monotonic()
        with self._metrics.relist():
            found = super().list(labels)
        self._last_seen = began_at
        self._running.listed(found, began)
        sandboxes = [one for one in found if one.labels.get(CONTAINER_NAME) == SANDBOX]
        # A pod whose old sandbox is still running counts only once.
        pods = {one.labels.get(POD_UID) for one in sandboxes if one.state == "running"}
        containers = Counter(str(one.state) for one in found if one.labels.get(CONTAINER_NAME) != SANDBOX)
        self._metrics.running(len(pods), containers)
        return found

    def unhealthy(self) -> str:
        """Return why PLEG is unhealthy, or an empty string if it is healthy. Does not wait for a relist in progress."""
        return illness(self._last_seen, self._monotonic(), self._threshold)

    def stalled(self) -> str:
        """Like `unhealthy`, but a new process is healthy until the full threshold has passed without a first relist."""
        return illness(self._began if self._last_seen is None else self._last_seen, self._monotonic(), self._threshold)
