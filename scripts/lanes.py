"""Runs all tests in parallel lanes, since most tests wait for real clocks; called by scripts/test.

Input: a folder of tests. Output, on standard output: a line for each unit (a folder or file of tests), the output of
each failed unit (of one stopped at its time limit only the end), a line per minute with the current tests, and at the
end the slowest tests and the failed units. Exit status 1 if any unit failed, was stopped or was not run.
Checks, which are separate commands, are the first units.

When a lane has finished a unit, it starts the next one. The longest units come first, so that the lanes end at about
the same time. A unit is a separate pytest process, with a separate Docker Engine if it needs one. At its time limit it
gets SIGINT, so that it can stop its servers, and SIGKILL a minute later.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[1]
EXCLUDED = ("tests/deciders", "tests/rules")
"""Folders that are not units, because the check `branches` of scripts/test runs their tests."""
WHOLE = ("tests/adapters", "tests/cli", "tests/contracts", "tests/node")
"""Each of these folders, with all folders below it, is one unit, because each unit takes two seconds to start."""
BY_FILE = ("tests/attacks", "tests/e2e")
"""In and below these folders, each file is a unit; elsewhere, each folder is a unit."""
BY_FOLDER = ("tests/e2e/chaos", "tests/e2e/monitoring")
"""Exceptions below the folders in BY_FILE: each of these folders is one unit."""
LONGEST_FIRST = (
    "tests/corpus/extra",
    "tests/e2e/chaos",
    "tests/e2e/probes/test_probe_soak.py",
    "tests/e2e/crash_matrix/test_crash_matrix.py",
    "tests/e2e/processes/test_disturbances.py",
    "tests/integration/effects/pod",
    "tests/kernel/kill",
    "tests/setup",
    "tests/deploy",
    "tests/e2e/pods/test_churn.py",
    "tests/e2e/crash_matrix/test_device_matrix.py",
    "tests/adapters",
    "tests/cli",
    "tests/integration/effects",
    "tests/e2e/recovery/test_lost_log.py",
    "tests/integration/effects/cgroups",
    "tests/e2e/monitoring",
    "tests/contracts",
    "tests/integration/process",
    "tests/e2e/images/test_slow_images.py",
    "tests/integration/redis_guard",
    "tests/e2e/pods/test_bad_containers.py",
    "tests/e2e/recovery/test_thirty_pods.py",
    "tests/e2e/probes/test_overload.py",
    "tests/e2e/images/test_images.py",
    "tests/integration/probes",
    "tests/e2e/pods/test_pod_life.py",
    "tests/e2e/collecting/test_containers.py",
)
"""The first units, in the order in which they start. Units that take less than 40 seconds follow alphabetically."""
MINUTE = 60.0
GRACE_SECONDS = 60.0
SLOWEST = 20
TAIL_LINES = 60


@dataclass
class Running:
    """A running unit."""

    name: str
    process: subprocess.Popen[bytes]
    output: Path
    report: Path
    began: float
    interrupted: float = 0.0

    @property
    def current(self) -> str:
        """The current test, according to pytest's verbose output."""
        lines = [line for line in self.output.read_text(errors="replace").splitlines() if "::" in line]
        return lines[-1].split(" ")[0] if lines else self.name


def units(root: Path) -> list[str]:
    """Return all units as paths relative to `root`, the longest first."""
    found: set[str] = set()
    for path in sorted((root / "tests").rglob("test_*.py")):
        folder = str(path.parent.relative_to(root))
        if not folder.startswith(EXCLUDED):
            by_file = _is_in(folder, BY_FILE) and not _is_in(folder, BY_FOLDER)
            whole = next((parent for parent in WHOLE if _is_in(folder, (parent,))), folder)
            found.add(str(path.relative_to(root)) if by_file else whole)
    known = [name for name in LONGEST_FIRST if name in found]
    return [*known, *sorted(found - set(known))]


def _is_in(folder: str, parents: Sequence[str]) -> bool:
    return any(folder == parent or folder.startswith(f"{parent}/") for parent in parents)


def arguments(root: Path, name: str) -> list[str]:
    """Return a unit's arguments for pytest: its file, or the files in its folder. Subfolders are separate units, except
    for the folders in WHOLE.
    """
    path = root / name
    if path.is_file():
        return [name]
    found = path.rglob("test_*.py") if name in WHOLE else path.glob("test_*.py")
    return [str(unit.relative_to(root)) for unit in sorted(found)]


class Lanes:
    """Runs several units at a time."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self._options = options
        self._scratch = scratch
        self._checks = dict(check.split("=", 1) for check in options.check)
        self._waiting = [*self._checks, *units(options.root)]
        self._running: list[Running] = []
        self._end = time.monotonic() + options.limit
        self.counts: Counter[str] = Counter()
        self.failed: list[str] = []
        self.slowest: list[tuple[float, str]] = []

    def run(self) -> None:
        """Run all units, or as many as the time limit allows."""
        reported = time.monotonic()
        while self._waiting or self._running:
            while self._waiting and len(self._running) < self._options.lanes and time.monotonic() < self._end:
                self._running.append(self._start(self._waiting.pop(0)))
            time.sleep(0.2)
            self._poll()
            if time.monotonic() - reported >= MINUTE:
                reported = time.monotonic()
                self._report_running()
            if not self._running and time.monotonic() >= self._end:
                break
        for name in self._waiting:
            self._fail(name, "not run: the time for all tests is over")

    def stop(self) -> None:
        """Interrupt all running units and wait until they have ended."""
        self._end = 0.0
        while self._running:
            time.sleep(0.2)
            self._poll()

    def _start(self, name: str) -> Running:
        stem = name.replace("/", "-")
        output, report = self._scratch / f"{stem}.out", self._scratch / f"{stem}.xml"
        with output.open("wb") as file:
            process = subprocess.Popen(
                self._command(name, report),
                cwd=self._options.root,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt from the terminal reaches units only through `stop`
            )
        return Running(name, process, output, report, time.monotonic())

    def _command(self, name: str, report: Path) -> list[str]:
        if name in self._checks:
            return shlex.split(self._checks[name])
        command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", f"--junitxml={report}"]
        return [*command, *self._options.pytest, *arguments(self._options.root, name)]

    def _poll(self) -> None:
        for unit in list(self._running):
            if unit.process.poll() is not None:
                self._running.remove(unit)
                self._finish(unit)
                continue
            now = time.monotonic()
            if not unit.interrupted and now >= min(self._end, unit.began + self._options.unit_limit):
                unit.interrupted = now
                log(f"stopping {unit.name} after {now - unit.began:.0f} s; it is at {unit.current}")
                unit.process.send_signal(signal.SIGINT)
            elif unit.interrupted and now >= unit.interrupted + self._options.grace:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(unit.process.pid, signal.SIGKILL)

    def _finish(self, unit: Running) -> None:
        seconds = time.monotonic() - unit.began
        found = Counter[str]()
        for took, name, outcome in cases(unit.report):
            found[outcome] += 1
            self.slowest.append((took, name))
        self.counts += found
        is_check = unit.name in self._checks
        counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.items())) or "no report"
        counted = "check" if is_check else counted
        # 5: pytest ran no tests: without --long, all tests of a unit may be deselected.
        if unit.process.returncode in ((0,) if is_check else (0, 5)) and not unit.interrupted:
            log(f"{unit.name}: {counted} in {seconds:.0f} s")
            return
        text = unit.output.read_text(errors="replace")
        if unit.interrupted:
            text = "\n".join(text.splitlines()[-TAIL_LINES:])
        log(f"{unit.name}: FAILED, {counted} in {seconds:.0f} s; it was at {unit.current}; its output:\n{text}")
        self._fail(unit.name, "stopped at its limit" if unit.interrupted else f"status {unit.process.returncode}")

    def _fail(self, name: str, why: str) -> None:
        self.failed.append(f"{name}: {why}")

    def _report_running(self) -> None:
        running = "; ".join(
            f"{unit.current} (unit for {time.monotonic() - unit.began:.0f} s)" for unit in self._running
        )
        log(f"{len(self._waiting)} units to come; now {running}")


def cases(report: Path) -> Iterator[tuple[float, str, str]]:
    """Yield the seconds, name and outcome of each test in a JUnit report; nothing if the report cannot be read."""
    try:
        tree = ET.parse(report)
    except (OSError, ET.ParseError):
        return
    for case in tree.iter("testcase"):
        found = {child.tag for child in case} & {"failure", "error", "skipped"}
        outcome = {"failure": "failed", "error": "error", "skipped": "skipped"}[min(found)] if found else "passed"
        yield float(case.get("time", "0")), f"{case.get('classname', '')}.{case.get('name', '')}", outcome


def log(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs all tests in parallel lanes. Called by scripts/test.")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder that contains `tests`")
    parser.add_argument("--lanes", type=int, default=3)
    parser.add_argument(
        "--check", action="append", default=[], metavar="NAME=COMMAND", help="run as an additional unit"
    )
    parser.add_argument("--limit", type=float, default=60 * MINUTE, help="time limit for all units, in seconds")
    parser.add_argument("--unit-limit", type=float, default=20 * MINUTE, help="time limit for each unit, in seconds")
    parser.add_argument("--grace", type=float, default=GRACE_SECONDS, help="seconds from SIGINT to SIGKILL")
    parser.add_argument("pytest", nargs="*", help="arguments for each pytest process, after --")
    return parser.parse_args(words)


def main() -> int:
    options = parsed(sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # even if SIGINT is ignored, as in a background job
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chronolet-lanes-") as scratch:
        lanes = Lanes(options, Path(scratch))
        try:
            lanes.run()
        except KeyboardInterrupt:
            lanes.stop()
            lanes.failed.append("interrupted")
    log(f"the {SLOWEST} slowest tests, in seconds:")
    for took, name in sorted(lanes.slowest, reverse=True)[:SLOWEST]:
        print(f"{took:8.1f}  {name}")
    for line in lanes.failed:
        print(f"failed unit: {line}")
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(lanes.counts.items()))
    log(f"{counted}, {len(lanes.failed)} bad units, in {time.monotonic() - began:.0f} s")
    return 1 if lanes.failed else 0


if __name__ == "__main__":
    sys.exit(main())
