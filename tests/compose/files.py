"""Runs docker-compose on the files in compose/. The development environment has docker-compose 1.29.

Input: names of files in compose/, variables. Output: the services that the files merge into, or the output of a
docker-compose command. Next: the tests in this folder.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.support.scratch import hang_limit

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "compose"
PLAIN = ("compose.yaml",)
SCALED = ("compose.yaml", "scale.yaml")
TLS = ("compose.yaml", "tls.yaml")


def compose(files: Sequence[str], *words: str, environ: Mapping[str, str] | None = None, seconds: float = 120) -> str:
    """Run docker-compose with these files and variables; return its stdout. Raises AssertionError if it fails."""
    flags = [word for name in files for word in ("-f", str(FOLDER / name))]
    done = subprocess.run(
        ["docker-compose", *flags, *words],
        env=os.environ | (environ or {}),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=hang_limit(seconds),
        check=False,
    )
    assert done.returncode == 0, f"docker-compose {words}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def services(files: Sequence[str], **environ: str) -> dict[str, dict[str, Any]]:
    """Return the merged services of these files, without Grafana."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(compose(files, "config", environ=environ))["services"]
    found.pop("grafana", None)
    return found
