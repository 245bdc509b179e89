"""Scratch folders under /tmp that name their owner, so that a later run recognizes leftovers of a dead run.

Input: a kind (`docker`, `redis`). Output: a folder `/tmp/chronolet-<kind>-<pid>-<n>` with a file `owner` in it. Paths
are short because a unix socket's path may have at most 107 characters, which pytest's own temporary folders exceed.
Next: `docker.engine` and `redis.server` put their servers there and remove what a killed run left behind.
"""

import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PATIENCE = float(os.environ.get("CHRONOLET_TEST_PATIENCE", "5"))
"""The factor by which everything may be slower than on an idle machine; an emulated processor needs a factor above
five.
"""
HANG_SECONDS = 20 * PATIENCE
"""A limit that only a hang exceeds, for work that takes at most two seconds on an idle machine. No test's result
depends on it.
"""
_BASE = Path("/tmp")  # not gettempdir(): TMPDIR may be long, or on a file system that overlay2 refuses
_numbers = itertools.count(1)


def start_time(pid: int) -> str | None:
    """Return the start time of a process in clock ticks; None if it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def create(kind: str) -> Path:
    """Create a folder that belongs to this process, as its file `owner` records."""
    folder = _BASE / f"chronolet-{kind}-{os.getpid()}-{next(_numbers)}"
    folder.mkdir(mode=0o700)
    unfinished = folder / "owner.new"
    unfinished.write_text(f"{os.getpid()} {start_time(os.getpid())}")
    unfinished.rename(folder / "owner")
    return folder


def remove(folder: Path) -> None:
    """Remove a folder in which threads that are ending may still remove their own files."""
    while folder.exists():
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


def sweep(kind: str, destroy: Callable[[Path], None]) -> None:
    """Destroy the folders of this kind whose owner has died. Only one test run does this at a time."""
    with (_BASE / f"chronolet-{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for folder in sorted(_BASE.glob(f"chronolet-{kind}-*-*")):
            if _abandoned(folder):
                destroy(folder)


def _abandoned(folder: Path) -> bool:
    """Return whether the owner has died. The start time shows whether its pid was reused."""
    try:
        owner = (folder / "owner").read_text()
    except FileNotFoundError:
        # A live run is creating the folder, or a dead or concurrent one is removing it.
        owner = folder.name.split("-")[2]
    pid, _, started = owner.partition(" ")
    now = start_time(int(pid))
    return now is None or (started not in ("", now))


def hang_limit(idle_seconds: float = 20) -> float:
    """Return the number of seconds after which something counts as hanging. `idle_seconds` is a generous limit for an
    idle machine: ten times the expected time.
    """
    return max(HANG_SECONDS, idle_seconds * PATIENCE)


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 20) -> None:
    """Return as soon as the condition holds; raise TimeoutError, which names `what`, if it does not within
    `hang_limit(seconds)`.
    """
    deadline = time.monotonic() + hang_limit(seconds)
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {hang_limit(seconds):.0f} s for {what}")
        time.sleep(0.01)


def unmount_below(folder: Path) -> None:
    """Unmount what is mounted below a folder, such as the volumes of a killed agent."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4] for line in lines]
    # In reverse order, since mounts may be nested.
    for point in reversed([point for point in points if point.startswith(f"{folder}/")]):
        subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)


def pids_naming(text: str) -> list[int]:
    """Return the pids of live processes whose command line contains the text, except this one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            cmdline = (entry / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid = int(entry.name)
        if text.encode() in cmdline and pid != os.getpid() and start_time(pid):
            found.append(pid)
    return found


def children(pid: int) -> list[int]:
    """Return the pids of all descendants of a process, each before its own descendants."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []
    found: list[int] = []
    for task in tasks:
        try:
            nearest = [int(child) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in nearest:
            found += [child, *children(child)]
    return found


def kill(pids: list[int]) -> None:
    """Send SIGKILL to each process and wait until all are gone; zombies count as gone."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    wait_until(lambda: not any(start_time(pid) for pid in pids), f"the end of {pids}")
