"""The wheel contains every file of the source tree, provides a working command, and has a reproducible build."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.deploy.packages import ROOT, run
from tests.deploy.test_deb import PROJECT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(run("scripts/wheel", "--out", tmp_path_factory.mktemp("wheel")).strip())


def test_the_wheel_has_every_file_of_the_source_tree(wheel: Path) -> None:
    assert wheel.name == f"chronolet-{PROJECT['version']}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    files = {
        str(path.relative_to(tree))
        for tree in (ROOT / "actors", ROOT / "schemas")
        for path in tree.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert len(files) > 500
    assert files <= names
    assert not [name for name in names if name.startswith(("tests", "scripts")) or "__pycache__" in name]
    assert "chronolet/kernel/storage/redis/functions/functions.lua" in names


def test_the_commands_are_entry_points_and_requirements_have_bounds(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        info = f"chronolet-{PROJECT['version']}.dist-info"
        entries = files.read(f"{info}/entry_points.txt").decode()
        metadata = files.read(f"{info}/METADATA").decode()
    assert "chronolet = chronolet.cli.loading:main" in entries
    assert f"\nVersion: {PROJECT['version']}\n" in metadata
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert len(required) == len(PROJECT["dependencies"])


def test_the_command_works_from_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    # As pipx does, but with the libraries of this environment instead of downloaded ones.
    run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", tmp_path, wheel)
    code = "import sys; sys.argv[1:] = ['--version']; from chronolet.cli.loading import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"chronolet {PROJECT['version']}\n"


def test_two_builds_of_one_commit_are_equal(wheel: Path, tmp_path: Path) -> None:
    again = Path(run("scripts/wheel", "--out", tmp_path).strip())
    assert again.read_bytes() == wheel.read_bytes()
