"""Checks that the import contracts hold, and that a violation of each contract is detected."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scratch import hang_limit

ROOT = Path(__file__).parents[2]

BREAKS = {
    "an actor imports another": ("pod/decider.py", "from chronolet.pleg import state as other", "one way"),
    "the kernel imports an adapter": ("kernel/hosting/host.py", "from chronolet import adapters", "one way"),
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
    assert "5 kept, 0 broken" in outcome.stdout


def uncovered(folder: Path) -> set[str]:
    """Return the actors (folders with an actor.py) that are missing from the layers contract or the purity contract."""
    contracts = configparser.ConfigParser()
    contracts.read(folder / ".importlinter")
    layers = contracts["importlinter:contract:layers"]["layers"].replace("|", " ").split()
    pure = contracts["importlinter:contract:pure"]["source_modules"].split()
    actors = {f"chronolet.{path.parent.name}" for path in (folder / "chronolet").glob("*/actor.py")}
    assert len(actors) >= 10
    return {actor for actor in actors if actor not in layers or actor not in pure}


def test_every_actor_is_covered(copy: Path) -> None:
    assert uncovered(copy) == set()


def test_an_actor_that_is_not_covered_is_noticed(copy: Path) -> None:
    (copy / "chronolet" / "newcomer").mkdir()
    (copy / "chronolet" / "newcomer" / "actor.py").touch()
    assert uncovered(copy) == {"chronolet.newcomer"}


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
