"""The commands that run in the fake runtime's containers.

Input: a program for each command. Output: execs with the states and streams of real ones. A program that does not exit
on its own echoes its input until the input ends. Next: `fakes.runtime`.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from chronolet.ports.runtime.runtime import ExecResult, ExecState, Refusal

Source = Literal["stdout", "stderr"]

CANNOT_RUN = 126
KILLED = 137
_SLICE_SECONDS = 0.05


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """Behaviour of a command: exit immediately with the code `exits`, or keep running (None); on TERM exit with the
    code `on_term`, or ignore it (None). `missing` is the runtime's error text if it refuses to start the command. A
    program that `computes` keeps a processor busy while it is running.
    """

    exits: int | None = None
    on_term: int | None = 0
    missing: str = ""
    stdout: bytes = b""
    stderr: bytes = b""
    computes: bool = False

    def output(self) -> Iterator[tuple[Source, bytes]]:
        """Yield the program's output as (stream, bytes)."""
        pieces: tuple[tuple[Source, bytes], ...] = (("stdout", self.stdout), ("stderr", self.stderr))
        return (piece for piece in pieces if piece[1])


@dataclass
class Exec:
    """One command, and the attachment to it. Mutable, because it represents the runtime's internal state."""

    container_id: str
    program: Program
    env: Mapping[str, str]
    stdin: bool
    started: bool = False
    started_at: float = 0.0
    exit_code: int | None = None
    size: tuple[int, int] = (0, 0)
    """Rows and columns of the last resize."""
    _input: queue.SimpleQueue[bytes] = field(default_factory=queue.SimpleQueue)

    over: threading.Event = field(default_factory=threading.Event)

    def is_running(self) -> bool:
        return self.started and self.exit_code is None

    def end(self, exit_code: int) -> None:
        if self.exit_code is None:
            self.exit_code = exit_code
        self.over.set()

    def output(self) -> Iterator[tuple[str, bytes]]:
        yield from self.program.output()
        if self.program.exits is None and self.stdin:
            while data := self._input.get():
                yield "stdout", data
        self.end(self.program.exits or 0)

    def send(self, data: bytes) -> None:
        self._input.put(data)

    def end_input(self) -> None:
        self._input.put(b"")

    def close(self) -> None:
        self._input.put(b"")


class FakeExecs:
    """All execs of a fake runtime."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self.all: dict[str, Exec] = {}

    def create(self, container_id: str, program: Program, env: Mapping[str, str], *, stdin: bool) -> str:
        with self._lock:
            exec_id = f"{next(self._numbers):064x}"
            self.all[exec_id] = Exec(container_id, program, env, stdin)
            return exec_id

    def inspect(self, exec_id: str) -> ExecState | None:
        found = self.all.get(exec_id)
        if found is None:
            return None
        return ExecState(running=found.is_running(), exit_code=found.exit_code)

    def start(self, exec_id: str) -> Exec:
        found = self._found(exec_id)
        with self._lock:
            if found.started:
                raise Refusal("conflict", f"Error: Exec command {exec_id} is already running")
            found.started, found.started_at = True, time.monotonic()
        return found

    def find(self, container_id: str, mark: tuple[str, str]) -> list[str]:
        name, value = mark
        return [
            key
            for key, one in list(self.all.items())
            if one.container_id == container_id and one.is_running() and one.env.get(name) == value
        ]

    def seconds(self, exec_id: str) -> float | None:
        found = self.all.get(exec_id)
        if found is None or not found.is_running():
            return None
        return time.monotonic() - found.started_at if found.program.computes else 0.0

    def run(
        self,
        exec_id: str,
        timeout_seconds: float,
        cancelled: threading.Event | None,
        meanwhile: Callable[[], object] | None,
    ) -> ExecResult:
        found = self.start(exec_id)
        program = found.program
        if program.missing:
            found.end(CANNOT_RUN)
            return ExecResult(output=program.missing.encode(), exit_code=CANNOT_RUN)
        if program.exits is not None:
            found.end(program.exits)
        until = time.monotonic() + timeout_seconds if timeout_seconds else None
        while not found.over.wait(_SLICE_SECONDS):
            if meanwhile is not None:
                meanwhile()
            if (cancelled is not None and cancelled.is_set()) or (until is not None and time.monotonic() > until):
                raise Refusal("timeout", f"exec {exec_id}: still running when its time was up")
        return ExecResult(output=program.stdout + program.stderr, exit_code=found.exit_code or 0)

    def kill(self, exec_id: str) -> None:
        found = self.all.get(exec_id)
        if found is not None and found.started:
            found.end(KILLED)

    def forget(self, container_id: str = "") -> None:
        """Forget the execs of a container that has ended; without an id forget all, as a restarted engine does."""
        with self._lock:
            gone = [key for key, one in self.all.items() if not container_id or one.container_id == container_id]
            for key in gone:
                self.all.pop(key).end(KILLED)

    def resize(self, exec_id: str, rows: int, columns: int) -> None:
        self._found(exec_id).size = (rows, columns)

    def _found(self, exec_id: str) -> Exec:
        if exec_id not in self.all:
            raise Refusal("not_found", f"No such exec instance: {exec_id}")
        return self.all[exec_id]
