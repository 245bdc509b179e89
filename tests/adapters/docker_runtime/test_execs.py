"""How Docker's execs end. For a command that it could not start, Docker reports 126 or 127, whatever the reason."""

from __future__ import annotations

import struct
import threading

import pytest

from chronolet.adapters.docker_runtime import execs
from chronolet.adapters.docker_runtime.connection import Connection
from chronolet.adapters.docker_runtime.execs import Execs
from chronolet.ports.runtime.runtime import ExecResult, Refusal

OCI = "OCI runtime exec failed: exec failed: unable to start container process: "


class Engine(Connection):
    """A fake connection: each exec exits immediately with this output, exit code and pid."""

    def __init__(self, output: str, exit_code: int, pid: int) -> None:
        self._pieces = [struct.pack(">BxxxL", 1, len(output)) + output.encode(), b""]
        self._inspected = f'{{"Running": false, "ExitCode": {exit_code}, "Pid": {pid}}}'.encode()

    def upgrade(self, *_words: object, **_more: object) -> Engine:  # type: ignore[override]
        return self

    def call(self, *_words: object, **_more: object) -> bytes:
        return self._inspected

    def has_something(self, _seconds: float) -> bool:
        return True

    def read_some(self) -> bytes:
        return self._pieces.pop(0)

    def close(self) -> None: ...


def run(output: str, exit_code: int = 126, pid: int = 0) -> ExecResult:
    engine = Engine(output, exit_code, pid)
    return Execs(engine).run("e", 1.0, None, None)


@pytest.mark.parametrize(
    "output",
    [
        OCI + 'exec: "absent": executable file not found in $PATH: unknown',
        OCI + 'exec: "/etc": permission denied: unknown',
        OCI + "exec /x: exec format error: unknown",
        OCI + 'chdir to cwd ("/x") set in config.json failed: no such file or directory: unknown',
    ],
)
def test_a_command_that_cannot_be_run_has_failed(output: str) -> None:
    assert run(output).exit_code == 126
    assert run(output, 127).exit_code == 127


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("error creating stdio pipes: pipe2: too many open files", "failed"),
        (OCI + "fork/exec /proc/self/exe: resource temporarily unavailable: unknown", "failed"),
        (OCI + "fork/exec /proc/self/exe: cannot allocate memory: unknown", "failed"),
        ("mkdir /run/containerd/fifo/7: no space left on device", "no_space"),
        ("ttrpc: closed: unknown", "unavailable"),
        ("", "failed"),
    ],
)
def test_a_problem_of_the_engine_is_no_failure_of_the_command(output: str, kind: str) -> None:
    with pytest.raises(Refusal) as refusal:
        run(output)
    assert refusal.value.kind == kind
    assert output in str(refusal.value)


def test_a_command_that_ran_may_write_anything() -> None:
    assert run("too many open files", pid=7).exit_code == 126
    assert run("", 0).exit_code == 0


class Clock:
    """A clock that advances only when its `sleep` is called."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class LongEngine(Engine):
    """A fake connection. The output ends immediately; exit code 3 is recorded when the clock shows `ends_at`."""

    def __init__(self, clock: Clock, ends_at: float) -> None:
        super().__init__("early words", 3, 7)
        self._clock, self._ends_at = clock, ends_at

    def call(self, *_words: object, **_more: object) -> bytes:
        if self._clock.now >= self._ends_at:
            return self._inspected
        return self._inspected.replace(b"false", b"true").replace(b"3", b"null")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    shown = Clock()
    monkeypatch.setattr(execs, "time", shown)
    return shown


def run_long(clock: Clock, ends_at: float, seconds: float, cancelled: threading.Event | None = None) -> ExecResult:
    engine = LongEngine(clock, ends_at)

    def give_up() -> None:
        if cancelled is not None and clock.now > 20:
            cancelled.set()

    return Execs(engine).run("e", seconds, cancelled, give_up)


@pytest.mark.parametrize("seconds", [0.0, 90.0])
def test_a_late_exit_code_is_awaited(clock: Clock, seconds: float) -> None:
    assert run_long(clock, 60, seconds) == ExecResult(output=b"early words", exit_code=3)
    assert clock.now < 61


def test_the_exit_code_is_awaited_until_the_timeout(clock: Clock) -> None:
    with pytest.raises(Refusal) as refusal:
        run_long(clock, 60, 30)
    assert (refusal.value.kind, 30 <= clock.now < 31) == ("timeout", True)


def test_the_exit_code_is_awaited_until_cancelled(clock: Clock) -> None:
    with pytest.raises(Refusal) as refusal:
        run_long(clock, 60, 0, threading.Event())
    assert (refusal.value.kind, 20 < clock.now < 21) == ("timeout", True)


def test_an_exit_code_may_be_recorded_after_the_timeout(clock: Clock) -> None:
    assert run_long(clock, 4, 1).exit_code == 3
