"""Checks that the import contracts hold, and that a violation of each contract is detected."""

from __future__ import annotations

import ast
import configparser
import fnmatch
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.scratch import hang_limit

ROOT = Path(__file__).parents[2]

BREAKS = {
    "a decider imports its effects": ("pod/decider.py", "from chronolet.pod import effects", "reaches no worker"),
    "a claim imports the registrar": (
        "devices/claims/waiting.py",
        "from chronolet.devices import registrar",
        "reaches no worker",
    ),
    "an actor imports another": ("pod/decider.py", "from chronolet.pleg import state as other", "one way"),
    "the kernel imports an adapter": ("kernel/host/host.py", "from chronolet import adapters", "one way"),
    "a decider reads the clock": ("pod/decider.py", "import time", "no clock"),
    "a decider makes an id": ("manifests/decider.py", "import uuid", "no clock"),
    "devices imports another actor": (
        "devices/claims/waiting.py",
        "from chronolet.pod import state as pods",
        "one way",
    ),
    "the decider of devices reads the clock": ("devices/decider.py", "import time", "no clock"),
    "a helper of devices draws lots": ("devices/claims/allocation.py", "import random", "no clock"),
    "a state draws lots": ("pleg/state.py", "import random", "no clock"),
    "a decider starts a thread": ("keeper/decider.py", "import threading", "no clock"),
    "a helper of a decider does I/O": ("pod/planning/backoff.py", "import socket", "no clock"),
    "a helper in a folder of pleg reads the clock": ("pleg/containers/changes.py", "import time", "no clock"),
    "a rule reads a file": ("rules/names/names.py", "import pathlib", "no clock"),
    "the kernel learns of pods": (
        "kernel/step/ledger.py",
        "from chronolet_schemas import pod as pods",
        "knows nothing",
    ),
    "schemas need Redis": ("../chronolet_schemas/codec.py", "import redis", "msgspec only"),
    "schemas need protobuf": ("../chronolet_schemas/devices.py", "import google.protobuf", "msgspec only"),
    "the sample plugin needs the agent": (
        "../chronolet_sample_plugin/life.py",
        "import chronolet.rules",
        "sample plugin",
    ),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts on the copy of the sources in `folder`."""
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=hang_limit(60),
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of all packages and contracts, in which tests break contracts."""
    for name in ("chronolet", "chronolet_sample_plugin"):
        shutil.copytree(ROOT / "actors" / name, tmp_path / name)
    shutil.copytree(ROOT / "schemas" / "chronolet_schemas", tmp_path / "chronolet_schemas")
    shutil.copy(ROOT / ".importlinter", tmp_path)
    return tmp_path


def test_contracts_hold(copy: Path) -> None:
    outcome = lint(copy)
    assert outcome.returncode == 0, outcome.stdout
    assert "6 kept, 0 broken" in outcome.stdout


def contract(folder: Path, name: str) -> configparser.SectionProxy:
    """Return a section of .importlinter."""
    contracts = configparser.ConfigParser()
    contracts.read(folder / ".importlinter")
    return contracts[f"importlinter:contract:{name}"]


def actors(folder: Path) -> set[str]:
    """Return the actors, which are the folders with an actor.py."""
    found = {f"chronolet.{path.parent.name}" for path in (folder / "chronolet").glob("*/actor.py")}
    assert len(found) >= 10
    return found


def uncovered(folder: Path) -> set[str]:
    """Return the actors that the layers contract or the purity contract does not name."""
    layers = contract(folder, "layers")["layers"].replace("|", " ").split()
    pure = contract(folder, "pure")["source_modules"].split()
    return {actor for actor in actors(folder) if actor not in layers or actor not in pure}


def modules(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield all modules of the package, with their files."""
    for file in (folder / "chronolet").rglob("*.py"):
        if file.name != "__init__.py":
            yield ".".join(file.relative_to(folder).with_suffix("").parts), file


def unclassified(folder: Path) -> set[str]:
    """Return the modules of actors that the contract `shell` names neither as pure nor as shell, or as both."""
    named = contract(folder, "shell")
    patterns = [named[field].split() for field in ("source_modules", "forbidden_modules")]

    def matches(module: str, pattern: str) -> bool:
        parts = pattern.split(".")
        return fnmatch.fnmatch(".".join(module.split(".")[: len(parts)]), pattern)

    return {
        module
        for module, _ in modules(folder)
        if module.rpartition(".")[0].startswith(tuple(actors(folder)))
        and sum(any(matches(module, pattern) for pattern in group) for group in patterns) != 1
    }


ALLOWED = {
    "chronolet.devices.plugins.validation": {"pathlib"},
    "chronolet.adapters.device_plugins.wire": {"pathlib"},
    "chronolet.adapters.docker_runtime.answers": {"datetime"},
    "chronolet.adapters.cgroups.files": {"os"},
}
"""Maps modules to the forbidden imports that they may have nevertheless: PurePosixPath does no I/O, the datetimes come
from replies, and the page size of a machine does not change.
"""


def impure(folder: Path) -> set[tuple[str, str]]:
    """Return the imports that the purity contract forbids in modules whose docstring says "Pure.", except those that
    `ALLOWED` lists, as pairs of module and imported package.
    """
    forbidden = set(contract(folder, "pure")["forbidden_modules"].split())
    found: set[tuple[str, str]] = set()
    count = 0
    for module, file in modules(folder):
        tree = ast.parse(file.read_text())
        if "Pure." not in (ast.get_docstring(tree) or ""):
            continue
        count += 1
        imported = {name for node in ast.walk(tree) for name in imports(node)}
        found |= {(module, name) for name in imported & forbidden - ALLOWED.get(module, set())}
    assert count > 80
    return found


def imports(node: ast.AST) -> Iterator[str]:
    """Yield the top-level packages that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield (node.module or "").partition(".")[0]


def test_every_actor_is_covered(copy: Path) -> None:
    assert uncovered(copy) == set()


def test_an_actor_that_is_not_covered_is_noticed(copy: Path) -> None:
    (copy / "chronolet" / "newcomer").mkdir()
    (copy / "chronolet" / "newcomer" / "actor.py").touch()
    assert uncovered(copy) == {"chronolet.newcomer"}


def test_every_module_of_an_actor_is_pure_or_part_of_the_shell(copy: Path) -> None:
    assert unclassified(copy) == set()
    (copy / "chronolet" / "pod" / "newcomer.py").touch()
    assert unclassified(copy) == {"chronolet.pod.newcomer"}


def test_modules_that_say_they_are_pure_import_no_clock_and_no_io(copy: Path) -> None:
    assert impure(copy) == set()
    folding = copy / "chronolet" / "kernel" / "folding.py"
    folding.write_text(folding.read_text() + "\nimport random\n")
    assert impure(copy) == {("chronolet.kernel.folding", "random")}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_contract_is_seen(copy: Path, name: str) -> None:
    file, line, contract = BREAKS[name]
    path = copy / "chronolet" / file
    first = "from __future__ import annotations\n"
    assert first in path.read_text()
    path.write_text(path.read_text().replace(first, f"{first}{line}\n", 1))
    outcome = lint(copy)
    assert outcome.returncode == 1, outcome.stdout
    broken = outcome.stdout.partition("Broken contracts")[2]
    assert contract in broken, outcome.stdout
