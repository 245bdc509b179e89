"""Run a command in a container until it exits, or kill it.

Input: the id of a prepared exec. Output: the command's output and exit code. Next: `hijack`, which connects to the
exec. Corresponds to pkg/kubelet/cri (ExecSync) and dockershim's exec.go.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from chronolet.adapters.docker_runtime.connection import ABSENT, ENDED, Connection, quoted
from chronolet.adapters.docker_runtime.errors import is_about_the_command, kind_of, one_line
from chronolet.adapters.docker_runtime.hijack import Attached
from chronolet.ports.runtime.runtime import ExecResult, Refusal

OUTPUT_LIMIT = 16 * 1024
"""Size in bytes to which an exec's output is truncated, as in the kubelet."""

_SLICE_SECONDS = 0.25
"""Interval at which cancellation is checked and `meanwhile` is called."""
_SETTLE_SECONDS = 5.0
"""Minimum time that the engine gets to record a command's exit after the command's output has ended, even if the
command's time-out passes meanwhile.
"""
_PAUSE_SECONDS = 0.01
NOT_BEGUN = (126, 127)
"""Docker's exit codes for a command that it could not start, for any reason."""
_STARTED_BEFORE = ("has already run", "is already running")
_NANOSECONDS = 1_000_000_000
_frame = struct.Struct(">BxxxL")


class _Wait(NamedTuple):
    """How long to wait for one command. `until` is a time of the monotonic clock; None means no limit. `cancelled` ends
    the wait early; `meanwhile` is called between checks.
    """

    exec_id: str
    until: float | None
    cancelled: threading.Event | None
    meanwhile: Callable[[], object]

    def slice(self) -> float:
        """Return the seconds until the next check. Raises Refusal `timeout` if the time is up or the wait was
        cancelled.
        """
        left = _SLICE_SECONDS if self.until is None else min(self.until - time.monotonic(), _SLICE_SECONDS)
        if left <= 0:
            raise Refusal("timeout", f"exec {self.exec_id}: still running when its time was up")
        if self.cancelled is not None and self.cancelled.is_set():
            raise Refusal("timeout", f"exec {self.exec_id}: the wait was cancelled")
        return left


class _Inspected(msgspec.Struct):
    Running: bool
    ExitCode: int | None = None
    Pid: int = 0


class _Container(msgspec.Struct):
    ExecIDs: list[str] | None = None


_inspected = msgspec.json.Decoder(_Inspected)
_container = msgspec.json.Decoder(_Container)


class Execs:
    """Runs, finds and kills the execs of one engine."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(
        self,
        exec_id: str,
        timeout_seconds: float,
        cancelled: threading.Event | None,
        meanwhile: Callable[[], object] | None,
    ) -> ExecResult:
        """See `ports.runtime.runtime.Runtime.run_exec`."""
        until = time.monotonic() + timeout_seconds if timeout_seconds else None
        wait = _Wait(exec_id, until, cancelled, meanwhile or _nothing)
        body = msgspec.json.encode({"Detach": False, "Tty": False})
        attached = self._connection.upgrade(f"/exec/{quoted(exec_id)}/start", body, tty=False)
        try:
            output = _output(attached, wait)
        finally:
            attached.close()
        text = one_line(output.decode(errors="replace"))
        # Once the connection is hijacked, Docker writes its own errors to it as if they were output.
        if text in [f"Error: Exec command {exec_id} {words}" for words in _STARTED_BEFORE]:
            raise Refusal("conflict", text)
        found = self._ended(wait, text)
        if not found.Pid and found.ExitCode in NOT_BEGUN and not is_about_the_command(text):
            raise Refusal(kind_of(text, "failed"), text or f"exec {exec_id}: did not start")
        return ExecResult(output=output, exit_code=found.ExitCode or 0)

    def kill(self, exec_id: str) -> None:
        """Kill the command's process group and descendants. Docker has no call for this, but the command's process
        leads its own session and group on this machine.
        """
        found = self._inspect(exec_id)
        if found is not None and found.Running and _leads_its_session(found.Pid):
            # A child with its own session can be found only through its parent, and only while the parent is alive.
            escaped = [child for child in _descendants(found.Pid) if not _is_in_group(child, found.Pid)]
            with contextlib.suppress(ProcessLookupError):
                os.killpg(found.Pid, signal.SIGKILL)
            for child in escaped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)

    def find(self, container_id: str, mark: tuple[str, str]) -> Sequence[str]:
        """Find running execs by an environment variable, which /proc shows but Docker does not report."""
        reply = self._connection.call_unless(ABSENT, "GET", f"/containers/{quoted(container_id)}/json")
        if reply is None:
            return ()
        variable = "=".join(mark).encode()
        return [one for one in _container.decode(reply).ExecIDs or () if variable in self._environment(one)]

    def seconds(self, exec_id: str) -> float | None:
        """See `ports.runtime.runtime.Runtime.exec_seconds`."""
        found = self._inspect(exec_id)
        if found is None or not found.Running or not found.Pid:
            return None
        return sum(map(_processor_seconds, (found.Pid, *_descendants(found.Pid))))

    def _environment(self, exec_id: str) -> Sequence[bytes]:
        found = self._inspect(exec_id)
        if found is None or not found.Running or not _leads_its_session(found.Pid):
            return ()
        try:
            return Path(f"/proc/{found.Pid}/environ").read_bytes().split(b"\0")
        except OSError:  # the process has exited, or we may not read its environment
            return ()

    def _ended(self, wait: _Wait, text: str) -> _Inspected:
        """Wait until the engine has recorded the exit, and return the record. The output ends earlier than that:
        usually by a moment, on a busy machine by many seconds.
        """
        if wait.until is not None:
            wait = wait._replace(until=max(wait.until, time.monotonic() + _SETTLE_SECONDS))
        pause = _PAUSE_SECONDS
        while (found := self._inspect(wait.exec_id)) is not None and found.Running:
            time.sleep(min(pause, wait.slice()))
            if pause >= _SLICE_SECONDS:
                wait.meanwhile()
            pause = min(2 * pause, _SLICE_SECONDS)
        if found is None:
            ended = f"exec {wait.exec_id}: its container ended before its exit code was read"
            raise Refusal("not_found", ended)
        if found.ExitCode is None:
            raise Refusal("failed", text or f"exec {wait.exec_id}: was not started")
        return found

    def _inspect(self, exec_id: str) -> _Inspected | None:
        found = self._connection.call_unless(ENDED, "GET", f"/exec/{quoted(exec_id)}/json")
        return None if found is None else _inspected.decode(found)


def _output(attached: Attached, wait: _Wait) -> bytes:
    """Read to the end and return stdout and stderr in order, truncated to the limit."""
    kept, rest = b"", b""
    while True:
        if not attached.has_something(wait.slice()):
            wait.meanwhile()
            continue
        piece = attached.read_some()
        if not piece:
            return kept
        content, rest = _unframed(rest + piece)
        kept = (kept + content)[:OUTPUT_LIMIT]


def _unframed(read: bytes) -> tuple[bytes, bytes]:
    """Return the content of all complete frames, and the remaining bytes."""
    content = b""
    while len(read) >= _frame.size:
        _, length = _frame.unpack(read[: _frame.size])
        if len(read) < _frame.size + length:
            break
        content += read[_frame.size : _frame.size + length]
        read = read[_frame.size + length :]
    return content, read


def _leads_its_session(pid: int) -> bool:
    """Whether the pid still belongs to the exec, as the leader of its own session; guards against reused pids. The
    fields after the name are state, parent, group, session.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return pid > 1 and fields[2] == fields[3] == str(pid)


def _processor_seconds(pid: int) -> float:
    """Return the seconds that a process spent on a processor or in a run queue, plus those of its reaped children."""
    total = 0.0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            on, queued, _ = map(int, task.read_text().split())
            total += (on + queued) / _NANOSECONDS
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")
    return total


def _is_in_group(pid: int, leader: int) -> bool:
    try:
        return os.getpgid(pid) == leader
    except ProcessLookupError:
        return True  # the process has exited


def _descendants(pid: int) -> list[int]:
    """Return all descendants of a process."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, listed.read_text().split()):
                found += (child, *_descendants(child))
    return found


def _nothing() -> None: ...
