"""The process reports its phase to its service manager, and reports itself alive only while all its threads run."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest
import structlog

from chronolet.node import service_manager
from chronolet.node.service_manager import ServiceManager
from tests.support.scratch import HANG_SECONDS, wait_until

PID = 7


class FakeProcess:
    """A process whose phase and stalled threads the test sets."""

    def __init__(self, phase: str = "checking") -> None:
        self.phase = phase
        self.stalled: tuple[str, ...] = ()
        self.looks = 0

    def stalled_threads(self, seconds: float) -> Collection[str]:
        assert seconds == service_manager.STALL_SECONDS
        self.looks += 1
        return self.stalled


class Received:
    """What a service manager has received."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self.lines: list[str] = []

    def wait_for(self, condition: Callable[[list[str]], bool]) -> list[str]:
        """Wait until the received lines meet the condition; return them and clear `lines`."""
        while not condition(self.lines):
            self.lines += self._channel.recv(4096).decode().splitlines()
        lines, self.lines = self.lines, []
        return lines

    def wait_for_line(self, line: str) -> list[str]:
        return self.wait_for(lambda lines: line in lines)

    def received(self) -> list[str]:
        """Return what has been received so far, without waiting."""
        self._channel.setblocking(False)
        try:
            while True:
                self.lines += self._channel.recv(4096).decode().splitlines()
        except BlockingIOError:
            return self.lines
        finally:
            self._channel.settimeout(HANG_SECONDS)


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[ServiceManager, Received]]:
    """A service manager with a watchdog, and what it receives."""
    path = f"{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.settimeout(HANG_SECONDS)
        channel.bind(path if request.param == "path" else f"\0{path}")
        address = path if request.param == "path" else f"@{path}"
        yield ServiceManager(address, watchdog_seconds=0.04), Received(channel)


def test_the_states_of_a_process_are_reported(manager: tuple[ServiceManager, Received]) -> None:
    process = FakeProcess()
    with service_manager.reporting(process, manager[0]):
        first = manager[1].wait_for_line("WATCHDOG=1")
        assert "STATUS=checking" in first
        # The unit's start time-out applies to a process that waits for its server.
        assert not [line for line in first if line.startswith(("READY", "EXTEND"))]

        process.phase = "recovering"
        read = manager[1].wait_for_line("EXTEND_TIMEOUT_USEC=60000000")
        assert "STATUS=recovering" in read
        assert "READY=1" not in read

        process.phase = "running"
        assert "STATUS=running" in manager[1].wait_for_line("READY=1")
        process.phase = "acquiring"
        later = manager[1].wait_for_line("STATUS=acquiring")
        assert "READY=1" not in later
    assert manager[1].wait_for_line("STOPPING=1")[-1] == "STATUS=stopping"


def test_a_standby_is_ready(manager: tuple[ServiceManager, Received]) -> None:
    with service_manager.reporting(FakeProcess("standing by"), manager[0]):
        manager[1].wait_for_line("READY=1")


def test_a_process_with_a_stalled_thread_is_not_alive(manager: tuple[ServiceManager, Received]) -> None:
    process = FakeProcess("running")
    with service_manager.reporting(process, manager[0]), structlog.testing.capture_logs() as logged:
        manager[1].wait_for_line("WATCHDOG=1")
        process.stalled = ("timers", "lease")
        manager[1].wait_for_line("STATUS=stuck: timers, lease")
        # While the threads are stalled, nothing is sent: no sign of life, and no change of the phase.
        process.phase = "acquiring"
        looks = process.looks
        wait_until(lambda: process.looks > looks + 10, "further looks")
        assert manager[1].received() == []
        process.stalled = ()
        assert manager[1].wait_for_line("WATCHDOG=1")[0] == "STATUS=acquiring"
    assert [line["status"] for line in logged if line["log_level"] == "error"] == ["stuck: timers, lease"]


def test_without_a_watchdog_no_sign_of_life_is_sent(manager: tuple[ServiceManager, Received]) -> None:
    quiet = ServiceManager(manager[0].address)
    with service_manager.reporting(FakeProcess("running"), quiet):
        manager[1].wait_for_line("READY=1")
    assert "WATCHDOG=1" not in manager[1].wait_for_line("STOPPING=1")


def test_a_service_manager_that_is_gone_fails_nothing(tmp_path: Path) -> None:
    with service_manager.reporting(FakeProcess(), ServiceManager(str(tmp_path / "gone"), 0.01)):
        pass


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "1000000"}, None),
        ({"NOTIFY_SOCKET": "vsock:2:1234"}, None),
        ({"NOTIFY_SOCKET": "/run/notify"}, ServiceManager("/run/notify")),
        ({"NOTIFY_SOCKET": "@notify", "WATCHDOG_USEC": "2500000"}, ServiceManager("@notify", 2.5)),
        ({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "7"}, ServiceManager("@n", 1.0)),
        ({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "8"}, ServiceManager("@n")),
        ({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "soon"}, ServiceManager("@n")),
    ],
)
def test_the_environment_names_the_service_manager(environ: dict[str, str], expected: ServiceManager | None) -> None:
    environ = environ | {"PATH": "/bin"}
    assert service_manager.taken_from(environ, PID) == expected
    assert environ == {"PATH": "/bin"}, "a child process must not report as this one"


def test_a_process_without_a_service_manager_reports_nothing() -> None:
    process = FakeProcess()
    process.stalled_threads = lambda seconds: pytest.fail("looked at")  # type: ignore[method-assign]
    with service_manager.reporting(process, None):
        pass
