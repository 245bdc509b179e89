"""The ends of processes, reported by the kernel."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

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


def proc_of(folder: Path, pid: int, cgroup: str) -> Path:
    """A /proc in which the process is in this cgroup."""
    (folder / str(pid)).mkdir()
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


@pytest.mark.parametrize("what", ["pidfd_open", "eventfd", "eventfd_write"])
def test_a_python_without_the_calls_watches_nothing(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, what)
    assert isinstance(host_processes(), NoProcesses)
