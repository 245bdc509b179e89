"""An in-memory container runtime that fulfils the same contract as the Docker adapter.

Input: the port's calls, and what a test or a trial run sets: programs, exits, refusals, an engine that is down. Output:
the port's states and notices. Next: users of `ports.runtime.runtime.Runtime`. `tests/contracts/runtime` tests both.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from signal import Signals
from types import MappingProxyType
from typing import Final, Literal

from chronolet.adapters.fakes.containers import Box, FakeStream, detail, image_of, summary
from chronolet.adapters.fakes.execs import KILLED, Exec, FakeExecs, Program
from chronolet.ports.runtime.runtime import (
    ContainerSpec,
    ContainerState,
    Engine,
    ExecResult,
    ExecState,
    ImageState,
    Notice,
    PullStep,
    Refusal,
    SandboxSpec,
)
from chronolet.ports.runtime.streams import Stream
from chronolet.rules.names.registry_keys import Credential

__all__ = ["FakeRuntime", "Program"]

START_FAILED: Final = 127

Action = Literal["create", "start", "kill", "die", "destroy", "oom"]


class FakeRuntime:
    """Implements `ports.runtime.runtime.Runtime` in memory. `programs` maps command lines to their behaviour; other
    commands run until they are stopped.
    """

    def __init__(
        self,
        *,
        programs: Mapping[tuple[str, ...], Program] | None = None,
        images: Iterable[str] = (),
        pullable: Iterable[str] = (),
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._programs = dict(programs or {})
        self._images = {name: image_of(name) for name in images}
        self._pullable = set(pullable)
        self._now = now
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._boxes: dict[str, Box] = {}
        self._history: list[Notice] = []
        self._streams: list[FakeStream] = []
        self._refusals: dict[str, deque[Refusal]] = {}
        self._down = False
        self.engine_id = "fake-1"
        self.silent = False
        """While set, notices are lost, so that only a listing shows changes."""
        self.calls: list[str] = []
        """The names of all calls so far, in order."""
        self.execs = FakeExecs()

    # -- set by tests ----------------------------------------------------------------------------------------------

    def refuse(self, call: str, refusal: Refusal, times: int = 1) -> None:
        """Make the next `times` calls with this name fail."""
        self._refusals.setdefault(call, deque()).extend([refusal] * times)

    def go_down(self) -> None:
        """Simulate a killed engine: streams break, calls are refused, execs are forgotten, containers survive."""
        self.execs.forget()
        with self._changed:
            self._down = True
            for stream in self._streams:
                stream.notices.put(Refusal("unavailable", "the runtime's event stream ended"))
            self._streams.clear()

    def come_up(self) -> None:
        """Bring the engine back."""
        with self._changed:
            self._down = False

    def end(self, container_id: str, exit_code: int = 0, *, oom: bool = False) -> None:
        """Simulate that a running container exits on its own."""
        with self._changed:
            self._end(self._boxes[container_id], exit_code, oom=oom)

    def freeze(self, container_id: str) -> None:
        """Pause a running container from outside: it keeps its processes, but no listing shows it as running."""
        with self._changed:
            box = self._boxes[container_id]
            box.state, box.frozen = "unknown", True

    # -- the port --------------------------------------------------------------------------------------------------

    def engine(self) -> Engine:
        self._enter("engine")
        return Engine(name="fake", version="1", api_version="1.41", id=self.engine_id)

    def create_sandbox(self, spec: SandboxSpec) -> str:
        self._enter("create_sandbox")
        return self._create(spec, Program())

    def create_container(self, spec: ContainerSpec) -> str:
        self._enter("create_container")
        return self._create(spec, self._programs.get((*spec.command, *spec.args), Program()))

    def start(self, container_id: str) -> None:
        self._enter("start")
        with self._changed:
            box = self._box(container_id)
            if box.state != "running":
                self._check_start(box)
                self._run(box)

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        del timeout_seconds
        self._enter("inspect")
        with self._changed:
            box = self._boxes.get(container_id_or_name) or self._named(container_id_or_name)
            return detail(box) if box else None

    def kill(self, container_id: str, signal: str = "KILL") -> None:
        self._enter("kill")
        with self._changed:
            box = self._boxes.get(container_id)
            if box is not None and box.state == "running":
                self._signal(box, signal)

    def wait(self, container_id: str, timeout_seconds: float) -> bool:
        self._enter("wait")
        with self._changed:
            box = self._boxes.get(container_id)
            return box is None or self._changed.wait_for(lambda: box.state != "running", timeout_seconds)

    def remove(self, container_id: str) -> None:
        self._remove("remove", container_id)

    def remove_dead(self, container_id: str) -> None:
        self._remove("remove_dead", container_id, only_dead=True)

    def forget_endpoint(self, name: str) -> None:  # noqa: ARG002 - the fake network has no endpoints
        self._enter("forget_endpoint")

    def _remove(self, call: str, container_id: str, *, only_dead: bool = False) -> None:
        self._enter(call)
        with self._changed:
            box = self._boxes.get(container_id)
            if box is None:
                return
            if only_dead and (box.state == "running" or box.frozen):
                word = "paused" if box.frozen else "running"
                raise Refusal("conflict", f"You cannot remove a {word} container {container_id}")
            self._signal(box, "KILL")
            del self._boxes[container_id]
            self._notify("destroy", box)

    def list(self, labels: Mapping[str, str]) -> Sequence[ContainerState]:
        self._enter("list")
        with self._changed:
            return [summary(box) for box in self._boxes.values() if labels.items() <= box.spec.labels.items()]

    def follow(
        self, labels: Mapping[str, str], since: int | None, opened: Callable[[Stream], None]
    ) -> Iterator[Notice]:
        self._enter("follow")
        stream = FakeStream(labels)
        with self._changed:
            for notice in self._history:
                if since is not None and notice.at >= since and labels.items() <= notice.labels.items():
                    stream.notices.put(notice)
            self._streams.append(stream)
        opened(stream)
        while (item := stream.notices.get()) is not None:
            if isinstance(item, Refusal):
                raise item
            yield item
        with self._changed:
            self._streams.remove(stream)

    def written_bytes(self, container_id: str) -> int:
        """Return the size of the container's output."""
        self._enter("written_bytes")
        with self._changed:
            box = self._boxes.get(container_id)
            return sum(len(text) for _, text in box.output) if box else 0

    def image(self, reference: str) -> ImageState | None:
        self._enter("image")
        return self._images.get(reference)

    def pull(
        self,
        reference: str,
        progress: Callable[[PullStep], None],
        *,
        credential: Credential | None = None,
        opened: Callable[[Stream], None] = lambda _: None,
        silence_seconds: float = 120.0,
    ) -> ImageState:
        """Pull an image that consists of one layer; no credentials are needed."""
        del credential, opened, silence_seconds
        self._enter("pull")
        if reference not in self._pullable:
            raise Refusal("not_found", f"manifest for {reference} not found: manifest unknown")
        size = len(reference)
        progress(PullStep(layer="layer", status="Downloading", done=size, total=size))
        self._images[reference] = image_of(reference)
        return self._images[reference]

    def import_image(self, reference: str, archive: bytes, changes: Sequence[str]) -> str:
        del archive, changes
        self._enter("import_image")
        self._images[reference] = image_of(reference)
        return self._images[reference].id

    def logs(
        self, container_id: str, *, follow: bool, tail: int | None, since: int | None, timestamps: bool
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the program's output; `since` and `timestamps` are ignored."""
        del since, timestamps
        self._enter("logs")
        with self._changed:
            box = self._box(container_id)
            pieces = list(box.output)
            if follow:
                self._changed.wait_for(lambda: box.state != "running")
        yield from pieces if tail is None else pieces[len(pieces) - min(tail, len(pieces)) :]

    def log_path(self, container_id: str) -> str:
        """Return a path at which there is no file."""
        return f"/fake/{container_id}.log"

    def create_exec(
        self,
        container_id: str,
        command: Sequence[str],
        *,
        tty: bool = False,
        stdin: bool = False,
        env: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        del tty
        self._enter("create_exec")
        with self._changed:
            box = self._box(container_id)
            if box.state != "running":
                raise Refusal("conflict", f"Container {container_id} is not running")
        return self.execs.create(container_id, self._programs.get(tuple(command), Program()), env, stdin=stdin)

    def inspect_exec(self, exec_id: str) -> ExecState | None:
        self._enter("inspect_exec")
        return self.execs.inspect(exec_id)

    def find_execs(self, container_id: str, mark: tuple[str, str]) -> Sequence[str]:
        self._enter("find_execs")
        return self.execs.find(container_id, mark)

    def exec_seconds(self, exec_id: str) -> float | None:
        self._enter("exec_seconds")
        return self.execs.seconds(exec_id)

    def run_exec(
        self,
        exec_id: str,
        timeout_seconds: float = 0.0,
        *,
        cancelled: threading.Event | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> ExecResult:
        self._enter("run_exec")
        return self.execs.run(exec_id, timeout_seconds, cancelled, meanwhile)

    def kill_exec(self, exec_id: str) -> None:
        self._enter("kill_exec")
        self.execs.kill(exec_id)

    def attach_exec(self, exec_id: str, *, tty: bool = False) -> Exec:
        del tty
        self._enter("attach_exec")
        return self.execs.start(exec_id)

    def resize_exec(self, exec_id: str, rows: int, columns: int) -> None:
        self._enter("resize_exec")
        self.execs.resize(exec_id, rows, columns)

    def close(self) -> None:
        """Do nothing: no resources are held."""

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _enter(self, call: str) -> None:
        with self._changed:
            self.calls.append(call)
            if self._down:
                raise Refusal("unavailable", "the fake runtime is down")
            waiting = self._refusals.get(call)
            if waiting:
                raise waiting.popleft()

    def _create(self, spec: SandboxSpec | ContainerSpec, program: Program) -> str:
        with self._changed:
            holder = self._named(spec.name)
            if holder is not None:
                raise Refusal("conflict", f"The container name {spec.name!r} is already in use by {holder.id}")
            # A container may name its image by id, as after a pull.
            if spec.image not in self._images and spec.image not in {image.id for image in self._images.values()}:
                raise Refusal("not_found", f"No such image: {spec.image}")
            box = Box(id=f"{next(self._numbers):064x}", spec=spec, program=program, created_at=self._now())
            self._boxes[box.id] = box
            self._notify("create", box)
            return box.id

    def _box(self, container_id: str) -> Box:
        box = self._boxes.get(container_id)
        if box is None:
            raise Refusal("not_found", f"No such container: {container_id}")
        return box

    def _named(self, name: str) -> Box | None:
        return next((box for box in self._boxes.values() if box.spec.name == name), None)

    def _check_start(self, box: Box) -> None:
        if box.program.missing:
            box.exit_code, box.error = START_FAILED, box.program.missing
            raise Refusal("failed", box.program.missing)
        if isinstance(box.spec, ContainerSpec):
            sandbox = self._boxes.get(box.spec.sandbox_id)
            if sandbox is None or sandbox.state != "running":
                raise Refusal("conflict", f"cannot join network of a non running container: {box.spec.sandbox_id}")
        taken = {(port.protocol, port.host_port) for other in self._running() for port in other.ports}
        for port in box.ports:
            if (port.protocol, port.host_port) in taken:
                raise Refusal("failed", f"Bind for 0.0.0.0:{port.host_port} failed: port is already allocated")

    def _running(self) -> Iterator[Box]:
        return (box for box in self._boxes.values() if box.state == "running")

    def _run(self, box: Box) -> None:
        box.state, box.started_at, box.finished_at = "running", self._now(), 0
        box.exit_code, box.error, box.oom_killed = 0, "", False
        box.ip = "172.17.0.2" if isinstance(box.spec, SandboxSpec) else ""
        box.output += box.program.output()
        self._notify("start", box)
        if box.program.exits is not None:
            self._end(box, box.program.exits)

    def _signal(self, box: Box, signal: str) -> None:
        if box.state != "running":
            return
        self._notify("kill", box, signal=Signals[f"SIG{signal.removeprefix('SIG')}"])
        if signal.removeprefix("SIG") == "KILL":
            self._end(box, KILLED)
        elif signal.removeprefix("SIG") == "TERM" and box.program.on_term is not None:
            self._end(box, box.program.on_term)

    def _end(self, box: Box, exit_code: int, *, oom: bool = False) -> None:
        box.state, box.finished_at, box.exit_code, box.oom_killed, box.ip = "exited", self._now(), exit_code, oom, ""
        self.execs.forget(box.id)
        if oom:
            self._notify("oom", box)
        self._notify("die", box, exit_code)
        self._changed.notify_all()

    def _notify(self, action: Action, box: Box, exit_code: int = 0, signal: int = 0) -> None:
        if self.silent:
            return
        notice = Notice(
            action=action, id=box.id, labels=box.spec.labels, at=self._now(), exit_code=exit_code, signal=signal
        )
        self._history.append(notice)
        for stream in self._streams:
            if stream.labels.items() <= notice.labels.items():
                stream.notices.put(notice)
