"""Sending signals to processes and being notified of their exit, through the kernel."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from chronolet.adapters.machine.processes import HostProcesses, host_processes
from chronolet.ports.runtime.processes import NoProcesses
from tests.support import scratch

ID = "c" * 64


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as one:
        yield one
        one.kill()


COMMAND = ("/bin/pause", "-é")
TERM_CAUGHT = f"{1 << (signal.SIGTERM - 1):016x}"


def proc_of(folder: Path, pid: int, cgroup: str, caught: str = TERM_CAUGHT) -> Path:
    """Make a /proc in which the process is in this cgroup and catches these signals."""
    (folder / str(pid)).mkdir()
    (folder / str(pid) / "status").write_text(f"Name:\tpause\nSigIgn:\t{0:016x}\nSigCgt:\t{caught}\n")
    (folder / str(pid) / "cmdline").write_bytes("/bin/pause\0-é\0".encode())
    (folder / str(pid) / "cgroup").write_text(f"4:memory:{cgroup}\n0::{cgroup}\n")
    return folder


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("cgroup", [f"/docker/{ID}", f"/kubepods/podu1/{ID}", f"/../../system.slice/docker-{ID}.scope"])
def test_the_end_of_a_process_is_reported_inside_the_block(
    process: subprocess.Popen[bytes], cgroup: str, tmp_path: Path
) -> None:
    before, ended = descriptors(), threading.Event()
    with HostProcesses(proc_of(tmp_path, process.pid, cgroup)).watched(process.pid, ID, ended.set):
        assert not ended.is_set()
        process.kill()
        assert ended.wait(scratch.hang_limit(30))
    assert descriptors() == before


def test_an_end_after_the_block_is_not_reported(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    before, ended = descriptors(), threading.Event()
    with HostProcesses(proc_of(tmp_path, process.pid, f"/docker/{ID}")).watched(process.pid, ID, ended.set):
        pass
    process.kill()
    process.wait()
    assert not ended.is_set(), "its thread has been joined"
    assert descriptors() == before


def test_an_error_inside_the_block_is_raised(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    before = descriptors()
    watched = HostProcesses(proc_of(tmp_path, process.pid, f"/docker/{ID}")).watched(process.pid, ID, lambda: None)
    with pytest.raises(ZeroDivisionError), watched:
        raise ZeroDivisionError
    assert descriptors() == before


def test_the_process_of_another_container_is_not_watched(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    ended = threading.Event()
    with HostProcesses(proc_of(tmp_path, process.pid, "/docker/other")).watched(process.pid, ID, ended.set):
        process.kill()
        process.wait()
    assert not ended.is_set()


@pytest.mark.parametrize("pid", [0, 4_194_305])
def test_an_absent_process_is_not_watched(pid: int) -> None:
    before, ended = descriptors(), threading.Event()
    with HostProcesses().watched(pid, ID, ended.set):
        pass
    assert not ended.is_set()
    assert descriptors() == before


def test_a_process_without_a_readable_cgroup_is_not_watched(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    before, ended = descriptors(), threading.Event()
    with HostProcesses(tmp_path).watched(process.pid, ID, ended.set):
        process.kill()
        process.wait()
    assert not ended.is_set()
    assert descriptors() == before


@pytest.mark.parametrize("what", ["pidfd_open", "eventfd"])
def test_without_descriptors_nothing_is_watched(
    process: subprocess.Popen[bytes], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before, ended = descriptors(), threading.Event()
    watched = HostProcesses(proc_of(tmp_path, process.pid, f"/docker/{ID}")).watched(process.pid, ID, ended.set)
    monkeypatch.setattr(os, what, refuse)
    with watched:
        process.kill()
        process.wait()
    assert not ended.is_set()
    assert descriptors() == before


def test_without_threads_nothing_is_watched(
    process: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    before, ended, done = descriptors(), threading.Event(), False
    watched = HostProcesses(proc_of(tmp_path, process.pid, f"/docker/{ID}")).watched(process.pid, ID, ended.set)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with watched:
        done = True
    assert done
    assert not ended.is_set()
    assert descriptors() == before


def test_processes_of_this_host_are_watched() -> None:
    assert isinstance(host_processes(), HostProcesses)


@pytest.mark.parametrize(
    ("module", "what"),
    [(os, "pidfd_open"), (os, "eventfd"), (os, "eventfd_write"), (signal, "pidfd_send_signal")],
)
def test_a_python_without_the_calls_watches_nothing(
    module: ModuleType, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(module, what)
    assert isinstance(host_processes(), NoProcesses)


@pytest.mark.parametrize("name", ["TERM", "SIGTERM"])
def test_a_signal_is_sent(process: subprocess.Popen[bytes], name: str, tmp_path: Path) -> None:
    before = descriptors()
    assert HostProcesses(proc_of(tmp_path, process.pid, f"/docker/{ID}")).signal(process.pid, ID, COMMAND, name)
    assert process.wait(scratch.hang_limit(30)) == -signal.SIGTERM
    assert descriptors() == before


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_a_signal_without_a_handler_is_not_sent(process: subprocess.Popen[bytes], name: str, tmp_path: Path) -> None:
    only_hup = f"{1 << (signal.SIGHUP - 1):016x}"
    proc = proc_of(tmp_path, process.pid, f"/docker/{ID}", only_hup)
    assert not HostProcesses(proc).signal(process.pid, ID, COMMAND, name)
    assert process.poll() is None


@pytest.mark.parametrize("found", [b"runc\0init\0", b"/bin/pause\0", b"/bin/pause\0-v\0-v\0", b"/bin/pause -v", b""])
def test_a_process_that_runs_something_else_gets_no_signal(
    process: subprocess.Popen[bytes], found: bytes, tmp_path: Path
) -> None:
    proc = proc_of(tmp_path, process.pid, f"/docker/{ID}")
    (proc / str(process.pid) / "cmdline").write_bytes(found)
    assert not HostProcesses(proc).signal(process.pid, ID, COMMAND, "TERM")
    assert process.poll() is None


def test_a_process_of_which_no_command_is_known_gets_no_signal(
    process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    proc = proc_of(tmp_path, process.pid, f"/docker/{ID}")
    assert not HostProcesses(proc).signal(process.pid, ID, (), "TERM")
    (proc / str(process.pid) / "cmdline").write_bytes(b"")  # as for a zombie
    assert not HostProcesses(proc).signal(process.pid, ID, (), "TERM")
    assert process.poll() is None


def test_without_a_line_of_handlers_no_signal_is_sent(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    proc = proc_of(tmp_path, process.pid, f"/docker/{ID}")
    (proc / str(process.pid) / "status").write_text("Name:\tpause\n")
    assert not HostProcesses(proc).signal(process.pid, ID, COMMAND, "TERM")
    assert process.poll() is None


@pytest.mark.parametrize("name", ["", "0", "15", "RTMIN+3", "SIGNAL"])
def test_a_signal_of_no_such_name_is_not_sent(process: subprocess.Popen[bytes], name: str, tmp_path: Path) -> None:
    before = descriptors()
    assert not HostProcesses(proc_of(tmp_path, process.pid, f"/docker/{ID}")).signal(process.pid, ID, COMMAND, name)
    assert descriptors() == before
    assert process.poll() is None


def test_another_containers_process_gets_no_signal(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    before = descriptors()
    assert not HostProcesses(proc_of(tmp_path, process.pid, "/docker/other")).signal(process.pid, ID, COMMAND, "KILL")
    assert descriptors() == before
    assert process.poll() is None


@pytest.mark.parametrize("pid", [0, 4_194_305])
def test_a_process_that_is_not_there_gets_no_signal(pid: int) -> None:
    before = descriptors()
    assert not HostProcesses().signal(pid, ID, COMMAND, "TERM")
    assert descriptors() == before


def test_a_process_that_may_not_be_signalled_is_left_to_the_runtime(
    process: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    assert not HostProcesses(proc_of(tmp_path, process.pid, f"/docker/{ID}")).signal(process.pid, ID, COMMAND, "TERM")


def test_without_processes_no_signal_is_sent() -> None:
    assert not NoProcesses().signal(os.getpid(), ID, COMMAND, "TERM")
