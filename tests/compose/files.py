"""Compose files as `docker-compose` understands them: the development environment has its version 1.29.

Input: names of files in compose/, variables. Output: their merged services; runs of docker-compose. Next: the tests.
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
    """Run docker-compose with these files and variables; return its output. Raises AssertionError if it fails."""
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
