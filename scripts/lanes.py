"""All tests in lanes next to each other, for most of them wait for real clocks; called by scripts/test.

In: a folder of tests. Out: a line for each unit (a folder or file of tests) on standard output, the whole output of
each that failed, a line a minute that names the tests that run, and at the end the slowest tests. Exit status 1 if any
unit failed, was stopped at its limit or was not run. Checks, which are commands of their own, are the first units.

Each lane takes the next unit when it has finished one, the longest units first, so that the lanes end together. A unit
is a pytest process of its own, with a Docker Engine of its own where it needs one. At its limit it gets SIGINT, so that
it ends its servers, and SIGKILL a minute later.
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
LEFT_OUT = ("tests/deciders", "tests/rules")
"""The check `branches` of scripts/test runs them, with their coverage."""
BY_FILE = ("tests/attacks", "tests/contracts", "tests/e2e", "tests/integration/effects")
"""Folders whose files are units; elsewhere a folder is one."""
LONGEST_FIRST = (
    "tests/corpus",
    "tests/e2e/chaos",
    "tests/e2e/test_probe_soak.py",
    "tests/e2e/crash_matrix",
    "tests/kernel/kill",
    "tests/cli",
    "tests/setup",
    "tests/e2e/test_churn.py",
    "tests/e2e/test_thirty_pods.py",
    "tests/e2e/test_lost_log.py",
    "tests/e2e/test_gc.py",
    "tests/integration/process",
    "tests/e2e/test_slow_images.py",
    "tests/integration/effects/test_pod_workers.py",
    "tests/e2e/test_commands.py",
    "tests/integration/keeper",
    "tests/adapters",
    "tests/e2e/test_images.py",
    "tests/e2e/test_qos.py",
    "tests/e2e/test_probes_killed.py",
    "tests/e2e/test_lifecycle.py",
    "tests/e2e/test_pod_life.py",
    "tests/e2e/test_bad_containers.py",
    "tests/e2e/test_devices.py",
    "tests/integration/redis_guard",
    "tests/integration/kube_events",
    "tests/integration/effects/test_volumes.py",
    "tests/kernel/storage",
)
"""The order of a run of all tests; what takes less than 40 seconds there comes in any order."""
MINUTE = 60.0
GRACE_SECONDS = 60.0
SLOWEST = 45
TAIL_LINES = 60


@dataclass
class Running:
    """A unit under way."""

    name: str
    process: subprocess.Popen[bytes]
    output: Path
    report: Path
    began: float
    interrupted: float = 0.0

    @property
    def current(self) -> str:
        """The test that runs, as pytest's verbose output ends."""
        lines = [line for line in self.output.read_text(errors="replace").splitlines() if "::" in line]
        return lines[-1].split(" ")[0] if lines else self.name


def units(root: Path) -> list[str]:
    """By path below `root`, the longest first."""
    found: set[str] = set()
    for path in sorted((root / "tests").rglob("test_*.py")):
        folder = str(path.parent.relative_to(root))
        if not folder.startswith(LEFT_OUT):
            found.add(str(path.relative_to(root)) if folder in BY_FILE else folder)
    known = [name for name in LONGEST_FIRST if name in found]
    return [*known, *sorted(found - set(known))]


def arguments(root: Path, name: str) -> list[str]:
    """What pytest is given for a unit: of a folder its own files, for its sub-folders are units of their own."""
    path = root / name
    return [name] if path.is_file() else [str(one.relative_to(root)) for one in sorted(path.glob("test_*.py"))]


class Lanes:
    """Runs units, some at a time."""

    def __init__(self, given: argparse.Namespace, scratch: Path) -> None:
        self._given = given
        self._scratch = scratch
        self._checks = dict(check.split("=", 1) for check in given.check)
        self._waiting = [*self._checks, *units(given.root)]
        self._running: list[Running] = []
        self._end = time.monotonic() + given.limit
        self.counts: Counter[str] = Counter()
        self.bad: list[str] = []
        self.slowest: list[tuple[float, str]] = []

    def run(self) -> None:
        """Until no unit is left, or the limit is reached."""
        told = time.monotonic()
        while self._waiting or self._running:
            while self._waiting and len(self._running) < self._given.lanes and time.monotonic() < self._end:
                self._running.append(self._start(self._waiting.pop(0)))
            time.sleep(0.2)
            self._look()
            if time.monotonic() - told >= MINUTE:
                told = time.monotonic()
                self._say_what_runs()
            if not self._running and time.monotonic() >= self._end:
                break
        for name in self._waiting:
            self._bad(name, "not run: the time for all tests is over")

    def stop(self) -> None:
        """Interrupt what runs, and wait until it has ended."""
        self._end = 0.0
        while self._running:
            time.sleep(0.2)
            self._look()

    def _start(self, name: str) -> Running:
        stem = name.replace("/", "-")
        output, report = self._scratch / f"{stem}.out", self._scratch / f"{stem}.xml"
        with output.open("wb") as file:
            process = subprocess.Popen(
                self._command(name, report),
                cwd=self._given.root,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt of the terminal reaches it through `stop` alone
            )
        return Running(name, process, output, report, time.monotonic())

    def _command(self, name: str, report: Path) -> list[str]:
        if name in self._checks:
            return shlex.split(self._checks[name])
        command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", f"--junitxml={report}"]
        return [*command, *self._given.pytest, *arguments(self._given.root, name)]

    def _look(self) -> None:
        for one in list(self._running):
            if one.process.poll() is not None:
                self._running.remove(one)
                self._ended(one)
                continue
            now = time.monotonic()
            if not one.interrupted and now >= min(self._end, one.began + self._given.unit_limit):
                one.interrupted = now
                say(f"stopping {one.name} after {now - one.began:.0f} s; it is at {one.current}")
                one.process.send_signal(signal.SIGINT)
            elif one.interrupted and now >= one.interrupted + self._given.grace:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(one.process.pid, signal.SIGKILL)

    def _ended(self, one: Running) -> None:
        seconds = time.monotonic() - one.began
        found = Counter[str]()
        for took, name, outcome in cases(one.report):
            found[outcome] += 1
            self.slowest.append((took, name))
        self.counts += found
        is_check = one.name in self._checks
        counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.items())) or "no report"
        counted = "check" if is_check else counted
        # 5: no tests, all of them left out unless --long.
        if one.process.returncode in ((0,) if is_check else (0, 5)) and not one.interrupted:
            say(f"{one.name}: {counted} in {seconds:.0f} s")
            return
        text = one.output.read_text(errors="replace")
        if one.interrupted:
            text = "\n".join(text.splitlines()[-TAIL_LINES:])
        say(f"{one.name}: FAILED, {counted} in {seconds:.0f} s; it was at {one.current}; its output:\n{text}")
        self._bad(one.name, "stopped at its limit" if one.interrupted else f"status {one.process.returncode}")

    def _bad(self, name: str, why: str) -> None:
        self.bad.append(f"{name}: {why}")

    def _say_what_runs(self) -> None:
        running = "; ".join(f"{one.current} (unit for {time.monotonic() - one.began:.0f} s)" for one in self._running)
        say(f"{len(self._waiting)} units to come; now {running}")


def cases(report: Path) -> Iterator[tuple[float, str, str]]:
    """Seconds, name and outcome of each test of a JUnit report; none if it was not written."""
    try:
        tree = ET.parse(report)
    except (OSError, ET.ParseError):
        return
    for case in tree.iter("testcase"):
        found = {child.tag for child in case} & {"failure", "error", "skipped"}
        outcome = {"failure": "failed", "error": "error", "skipped": "skipped"}[min(found)] if found else "passed"
        yield float(case.get("time", "0")), f"{case.get('classname', '')}.{case.get('name', '')}", outcome


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="all tests in lanes; scripts/test calls this")
    parser.add_argument("--root", type=Path, default=ROOT, help="has a folder `tests`")
    parser.add_argument("--lanes", type=int, default=3)
    parser.add_argument("--check", action="append", default=[], metavar="NAME=COMMAND", help="one more unit")
    parser.add_argument("--limit", type=float, default=60 * MINUTE, help="seconds for all")
    parser.add_argument("--unit-limit", type=float, default=20 * MINUTE, help="seconds for each unit")
    parser.add_argument("--grace", type=float, default=GRACE_SECONDS, help="seconds from SIGINT to SIGKILL")
    parser.add_argument("pytest", nargs="*", help="more arguments for each pytest, after --")
    return parser.parse_args(words)


def main() -> int:
    given = parsed(sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it is ignored, as in a background job
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chronolet-lanes-") as scratch:
        lanes = Lanes(given, Path(scratch))
        try:
            lanes.run()
        except KeyboardInterrupt:
            lanes.stop()
            lanes.bad.append("interrupted")
    say(f"the {SLOWEST} slowest tests, in seconds:")
    for took, name in sorted(lanes.slowest, reverse=True)[:SLOWEST]:
        print(f"{took:8.1f}  {name}")
    for line in lanes.bad:
        print(f"failed unit: {line}")
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(lanes.counts.items()))
    say(f"{counted}, {len(lanes.bad)} bad units, in {time.monotonic() - began:.0f} s")
    return 1 if lanes.bad else 0


if __name__ == "__main__":
    sys.exit(main())
