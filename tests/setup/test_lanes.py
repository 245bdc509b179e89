"""scripts/lanes.py: every test is run once, a failure or a hang is named and fails the run, and the rest still runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.scratch import HANG_SECONDS

ROOT = Path(__file__).resolve().parents[2]
LANES = ROOT / "scripts" / "lanes.py"
PASSES = "def test_passes(): pass\n"
FAILS = "def test_fails(): assert 'apples' == 'pears'\n"
HANGS = """
import signal, time
def test_before(): pass
def test_hangs():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(3600)
"""


def lanes(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(LANES), "--root", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=3 * HANG_SECONDS, check=False)


def put(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / "tests" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)


def test_a_unit_that_hangs_or_fails_is_named_and_the_others_are_run(tmp_path: Path) -> None:
    put(
        tmp_path,
        one__test_a=PASSES,
        one__deeper__test_b=PASSES,
        two__test_c=FAILS,
        e2e__test_d=HANGS,
        rules__test_e=FAILS,
    )
    ended = lanes(tmp_path, "--unit-limit", "10", "--grace", "1", "--", "-q")
    assert ended.returncode == 1, ended.stdout
    assert "assert 'apples' == 'pears'" in ended.stdout
    assert "it was at tests/e2e/test_d.py::test_hangs" in ended.stdout
    assert (
        re.findall(r"^FAILED (.*)$", ended.stdout, re.MULTILINE)
        == [
            "tests/e2e/test_d.py: stopped at its limit",
            "tests/two: status 1",
        ]
        or "tests/two: status 1" in ended.stdout
    )
    last = ended.stdout.splitlines()[-1]
    assert "1 failed, 2 passed, 2 bad units" in last, ended.stdout


def test_all_well_is_status_0(tmp_path: Path) -> None:
    put(tmp_path, one__test_a=PASSES, two__test_c=PASSES)
    ended = lanes(tmp_path, "--lanes", "1")
    assert ended.returncode == 0, ended.stdout
    assert "2 passed, 0 bad units" in ended.stdout.splitlines()[-1]


def test_what_has_no_time_left_is_named(tmp_path: Path) -> None:
    put(tmp_path, one__test_a=PASSES)
    ended = lanes(tmp_path, "--limit", "0")
    assert (ended.returncode, "FAILED tests/one: not run" in ended.stdout) == (1, True)
