"""The shipped files pass the checks and rule tests of promtool."""

from __future__ import annotations

import subprocess

import pytest

from tests.e2e.monitoring.prometheus import MONITORING


@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "rules/recording.yml", "rules/alerts.yml"),
        ("test", "rules", "rules/tests.yml"),
    ],
)
def test_promtool_accepts_the_files(words: tuple[str, ...]) -> None:
    done = subprocess.run(["promtool", *words], cwd=MONITORING, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


def test_promtool_finds_a_broken_rule(tmp_path: object) -> None:
    """promtool rejects an alert that calls an unknown function."""
    done = subprocess.run(
        ["promtool", "check", "rules"],
        input=(MONITORING / "rules" / "alerts.yml").read_text().replace("max_over_time(", "max_over_thyme("),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
