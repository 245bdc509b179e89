"""The lock files pin the dependencies of pyproject.toml for each supported Python; docs/dependencies.md lists them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
FILES = sorted((ROOT / "requirements").iterdir())


def dependencies_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dependencies_script", ROOT / "scripts" / "dependencies.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up the module of a class here
    spec.loader.exec_module(module)
    return module


SCRIPT = dependencies_script()


def pins(name: str) -> dict[str, Any]:
    return {pin.name: pin for pin in SCRIPT.pins((ROOT / "requirements" / f"{name}.txt").read_text())}


def named_pythons() -> list[str]:
    """Return the supported Python versions, such as `3.11`."""
    prefix = "Programming Language :: Python :: "
    return [one.removeprefix(prefix) for one in PROJECT["classifiers"] if one.startswith(prefix)]


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("runtime", PROJECT["dependencies"]),
        ("dev", [*PROJECT["dependencies"], *EXTRAS["dev"]]),
        ("embedded", EXTRAS["embedded"]),
        ("s3", EXTRAS["s3"]),
        ("docs", EXTRAS["docs"]),
        ("build", PYPROJECT["build-system"]["requires"]),
    ],
)
def test_dependencies_of_pyproject_are_locked_within_their_bounds(file: str, wanted: list[str]) -> None:
    locked = pins(file)
    assert wanted
    for requirement in map(Requirement, wanted):
        operators = {one.operator for one in requirement.specifier}
        assert operators == {">=", "<"}, f"{requirement}: needs a lower and an upper bound"
        pin = locked.get(canonicalize_name(requirement.name))
        assert pin is not None, f"{requirement}: not in requirements/{file}.txt; run scripts/lock"
        assert requirement.specifier.contains(pin.version), f"{requirement}: locked as {pin.version}; run scripts/lock"
    # No package is locked as a direct dependency that is no longer one.
    requested = {canonicalize_name(Requirement(one).name) for one in wanted}
    assert {name for name, pin in locked.items() if SCRIPT.ROOT_PACKAGE in pin.via} <= requested


def test_every_package_has_hashes_and_no_file_names_an_index() -> None:
    assert [path.name for path in FILES] == [
        "build.txt",
        "dev.txt",
        "docs.txt",
        "embedded.txt",
        "otel.txt",
        "runtime.txt",
        "s3.txt",
    ]
    for path in FILES:
        text = path.read_text()
        assert "://" not in text
        assert not re.search(r"^-", text, re.MULTILINE), "an option of pip"
        for pin in SCRIPT.pins(text):
            assert pin.hashes, f"{path.name}: {pin.name} has no hash"
            assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in pin.hashes)


def test_the_files_agree_with_each_other() -> None:
    together = SCRIPT.locked()  # raises if two files have different versions
    assert together.keys() == {name for path in FILES for name in pins(path.stem)}
    assert pins("runtime").keys() <= pins("dev").keys()


def test_every_named_python_gets_the_direct_dependencies() -> None:
    pythons = named_pythons()
    assert pythons[0] == PROJECT["requires-python"].removeprefix(">=")
    assert len(pythons) >= 3
    locked = pins("dev")
    for text in [*PROJECT["dependencies"], *EXTRAS["dev"]]:
        marker = Requirement(f"x; {locked[canonicalize_name(Requirement(text).name)].marker}").marker
        for python in pythons:
            environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
            assert marker is not None
            assert marker.evaluate(environment), f"{text}: not for Python {python}"


def test_no_wheel_is_missing_for_a_named_python() -> None:
    """A compiled package has at least one wheel for each Python version, and its source archive."""
    for name in ("hiredis", "immutables", "msgspec", "pyyaml", "grpcio"):
        assert len(pins("runtime")[name].hashes) > len(named_pythons())


def test_the_lock_files_contain_all_dependencies_of_their_packages() -> None:
    """All dependencies of the locked packages are locked as well."""
    command = [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_page_of_dependencies_matches_the_lock_files() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in page.splitlines() if line[:1] == "|"]
    stated = {row[0]: row[2] for row in rows[2:]}
    assert stated.keys() == SCRIPT.locked().keys()
    assert SCRIPT.page(SCRIPT.locked(), stated) == page, "run scripts/lock"
    assert not [name for name, licence in stated.items() if licence in ("", "not stated")]


def test_the_page_states_the_licences_of_installed_packages() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text()
    seen = 0
    for name, (pin, _) in SCRIPT.locked().items():
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # part of an extra, or for another Python version
        if found.version != pin.version:
            continue  # an environment made by other means
        headers = found.metadata
        wanted = {one: headers[one] for one in ("License-Expression", "License") if one in headers}
        seen += 1
        assert f"| {name} | {pin.version} | {SCRIPT.licence(wanted, headers.get_all('Classifier') or ())} |" in page
    assert seen > 10
