"""scripts/lanes.py runs every test once. If one fails or hangs, it reports that, runs all other tests, and fails."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO

from tests.support.scratch import HANG_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[2]
LANES = ROOT / "scripts" / "lanes.py"
PASSES = "def test_passes(): pass\n"
FAILS = "def test_fails(): assert 'apples' == 'pears'\n"
HANGS = """
import pathlib, signal, time
def test_before(): pass
def test_hangs():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pathlib.Path("hangs").touch()
    time.sleep(3600)
"""


def lanes_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lanes_script", LANES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up the module of a class here
    spec.loader.exec_module(module)
    return module


SCRIPT = lanes_script()


def lanes(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(LANES), "--root", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=3 * HANG_SECONDS, check=False)


@contextmanager
def running(root: Path, output: IO[bytes], *words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, str(LANES), "--root", str(root), *words], stdout=output)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(HANG_SECONDS)


def write_tests(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / "tests" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)


def failed_units(text: str) -> list[str]:
    return sorted(re.findall(r"^failed unit: (.*)$", text, re.MULTILINE))


def test_a_unit_that_hangs_or_fails_is_named_and_the_others_run(tmp_path: Path) -> None:
    write_tests(tmp_path, one__test_a=PASSES, one__deeper__test_b=PASSES, two__test_c=FAILS)
    write_tests(tmp_path, e2e__test_d=HANGS, rules__test_e=FAILS)
    output = tmp_path / "output"
    with output.open("wb") as file, running(tmp_path, file, "--grace", "1") as process:
        wait_until((tmp_path / "hangs").exists, "the test that hangs")
        wait_until(lambda: output.read_text().count("] tests/") >= 3, "the end of all others")
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == 1
    text = output.read_text()
    assert "assert 'apples' == 'pears'" in text
    assert "it was at tests/e2e/test_d.py::test_hangs" in text
    assert failed_units(text) == [
        "interrupted",
        "tests/e2e/test_d.py: stopped at its limit",
        "tests/two: status 1",
    ]
    assert "1 failed, 2 passed, 3 bad units" in text.splitlines()[-1]


def test_a_unit_has_a_limit(tmp_path: Path) -> None:
    write_tests(tmp_path, one__test_a=HANGS)
    ended = lanes(tmp_path, "--unit-limit", "0", "--grace", "1")
    assert ended.returncode == 1
    assert failed_units(ended.stdout) == ["tests/one: stopped at its limit"]


def test_without_failures_the_status_is_0(tmp_path: Path) -> None:
    write_tests(tmp_path, one__test_a=PASSES, two__test_c=PASSES)
    ended = lanes(tmp_path, "--lanes", "1", "--check", "words=test spell = spell")
    assert ended.returncode == 0, ended.stdout
    assert re.search(r"^\[.*\] words: check in ", ended.stdout, re.MULTILINE)
    assert "2 passed, 0 bad units" in ended.stdout.splitlines()[-1]


def test_a_failed_check_is_shown_with_its_output_and_the_tests_run(tmp_path: Path) -> None:
    write_tests(tmp_path, one__test_a=PASSES)
    ended = lanes(tmp_path, "--check", "words=bash -c 'echo plums are not pears; exit 3'")
    assert ended.returncode == 1
    assert "plums are not pears" in ended.stdout
    assert failed_units(ended.stdout) == ["words: status 3"]
    assert "1 passed, 1 bad units" in ended.stdout.splitlines()[-1]


def test_units_that_did_not_run_are_named(tmp_path: Path) -> None:
    write_tests(tmp_path, one__test_a=PASSES)
    ended = lanes(tmp_path, "--limit", "0")
    assert ended.returncode == 1
    assert failed_units(ended.stdout) == ["tests/one: not run: the time for all tests is over"]


def test_a_unit_is_a_folder_or_where_that_is_configured_a_file(tmp_path: Path) -> None:
    write_tests(tmp_path, one__test_a=PASSES, one__test_b=PASSES, one__deeper__test_c=PASSES)
    write_tests(tmp_path, e2e__test_d=PASSES, e2e__pods__test_e=PASSES, e2e__pods__test_f=PASSES)
    write_tests(tmp_path, e2e__chaos__test_g=PASSES, e2e__chaos__test_h=PASSES, rules__test_i=PASSES)
    assert sorted(SCRIPT.units(tmp_path)) == [
        "tests/e2e/chaos",
        "tests/e2e/pods/test_e.py",
        "tests/e2e/pods/test_f.py",
        "tests/e2e/test_d.py",
        "tests/one",
        "tests/one/deeper",
    ]


def test_a_whole_folder_is_one_unit_with_all_below_it(tmp_path: Path) -> None:
    write_tests(tmp_path, cli__test_a=PASSES, cli__get__test_b=PASSES)
    assert SCRIPT.units(tmp_path) == ["tests/cli"]
    assert SCRIPT.arguments(tmp_path, "tests/cli") == ["tests/cli/get/test_b.py", "tests/cli/test_a.py"]


def test_each_test_file_belongs_to_one_unit() -> None:
    found = Counter(path for unit in SCRIPT.units(ROOT) for path in SCRIPT.arguments(ROOT, unit))
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(found.values()) == {1}
    assert found.keys() == {path for path in files if not path.startswith(SCRIPT.EXCLUDED)}


def test_the_configured_paths_exist() -> None:
    assert set(SCRIPT.LONGEST_FIRST) <= set(SCRIPT.units(ROOT))
    assert all(
        (ROOT / folder).is_dir() for folder in (*SCRIPT.EXCLUDED, *SCRIPT.WHOLE, *SCRIPT.BY_FILE, *SCRIPT.BY_FOLDER)
    )
