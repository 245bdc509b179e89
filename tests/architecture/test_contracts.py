"""The import contracts hold, and each of them is seen to fail when it is broken."""

from __future__ import annotations

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
    "the kernel imports an adapter": ("kernel/host.py", "from chronolet import adapters", "one way"),
    "a decider reads the clock": ("pod/decider.py", "import time", "no clock"),
    "a decider makes an id": ("manifests/decider.py", "import uuid", "no clock"),
    "a state draws lots": ("pleg/state.py", "import random", "no clock"),
    "a decider starts a thread": ("keeper/decider.py", "import threading", "no clock"),
    "a helper of a decider does I/O": ("pod/backoff.py", "import socket", "no clock"),
    "a rule reads a file": ("rules/names.py", "import pathlib", "no clock"),
    "the kernel learns of pods": ("kernel/ledger.py", "from chronolet_schemas import pod as pods", "knows nothing"),
    "schemas need Redis": ("../chronolet_schemas/codec.py", "import redis", "msgspec only"),
    "schemas need protobuf": ("../chronolet_schemas/devices.py", "import google.protobuf", "msgspec only"),
    "the sample plugin needs the agent": (
        "../chronolet_sample_plugin/life.py",
        "import chronolet.rules",
        "sample plugin",
    ),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """The contracts, checked on a copy of the sources."""
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
    """All packages and the contracts, to be broken."""
    for name in ("chronolet", "chronolet_sample_plugin"):
        shutil.copytree(ROOT / "actors" / name, tmp_path / name)
    shutil.copytree(ROOT / "schemas" / "chronolet_schemas", tmp_path / "chronolet_schemas")
    shutil.copy(ROOT / ".importlinter", tmp_path)
    return tmp_path


def test_contracts_hold(copy: Path) -> None:
    outcome = lint(copy)
    assert outcome.returncode == 0, outcome.stdout
    assert "5 kept, 0 broken" in outcome.stdout


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
