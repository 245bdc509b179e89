"""systemd accepts the units, and their groups together host every actor exactly once."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from chronolet.node.settings.settings import ALL_ACTORS

GROUPS = ("collectors", "events", "keeper", "node", "prober")


def environment(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))


def groups(unpacked: Path) -> dict[str, dict[str, str]]:
    return {path.stem: environment(path.read_text()) for path in (unpacked / "etc/chronolet/groups").iterdir()}


def verified(folder: Path, *units: str) -> str:
    """Return what `systemd-analyze verify` prints; empty if the units are valid. Its status is 0 after a warning."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.fixture
def units(unpacked: Path, tmp_path: Path) -> Path:
    """A folder with the package's units, in which /bin/true replaces the agent's path, which is missing here."""
    source = unpacked / "lib/systemd/system"
    for path in source.rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(source)
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(path.read_text().replace("/usr/bin/chronolet", "/bin/true"))
    return tmp_path


def test_systemd_finds_no_fault(units: Path) -> None:
    assert sorted(path.name for path in units.glob("*.service")) == ["chronolet.service", "chronolet@.service"]
    names = ["chronolet.service", *(f"chronolet@{group}.service" for group in GROUPS)]
    (units / "chronolet@.service").rename(units / "template")
    for name in names[1:]:
        (units / name).write_text((units / "template").read_text())
    assert verified(units, *(f"./{name}" for name in names)) == ""


def test_systemds_check_finds_faults(units: Path) -> None:
    unit = units / "chronolet.service"
    unit.write_text(unit.read_text().replace("KillMode=", "KillMod="))
    assert "KillMod" in verified(units, "./chronolet.service")


def test_the_units_keep_what_they_promise(units: Path) -> None:
    for name in ("chronolet.service", "chronolet@.service"):
        text = (units / name).read_text()
        for line in ("Type=notify", "KillMode=process", "Delegate=yes", "Restart=always", "StartLimitIntervalSec=0"):
            assert f"\n{line}\n" in text, (name, line)
        assert re.search(r"\nWatchdogSec=", text)
        # Each of these settings creates a mount namespace: dockerd would not see a memory volume mounted in it.
        assert not re.search(r"\n(Protect(System|Home|Kernel\w+|ControlGroups)|Private\w+|ReadWritePaths)=", text), name
        assert "\nRestrictSUIDSGID=" not in text, "volumes of pods with an fsGroup have the set-group-id bit"


def test_the_two_units_differ_only_in_their_group(units: Path) -> None:
    single = (units / "chronolet.service").read_text().splitlines()
    template = (units / "chronolet@.service").read_text().splitlines()
    assert [line for line in template if line not in single] == [
        "Description=chronolet node agent, actors of group %I",
        "# One process for all actors, or one for each group.",
        "Conflicts=chronolet.service",
        "EnvironmentFile=/etc/chronolet/groups/%i.env",
    ]
    assert [line for line in single if line not in template] == ["Description=chronolet node agent"]


def test_the_groups_host_every_actor_once(unpacked: Path) -> None:
    found = groups(unpacked)
    assert sorted(found) == list(GROUPS)
    hosted = Counter(actor for group in found.values() for actor in group["CHRONOLET_ACTORS"].split(","))
    assert hosted == Counter(ALL_ACTORS)
    ports = [group["CHRONOLET_PORT"] for group in found.values()]
    assert len(set(ports)) == len(GROUPS), "each process needs a port of its own"


def test_groups_that_mount_something_are_not_isolated(units: Path) -> None:
    isolated = sorted(path.parent.name for path in units.glob("*/isolated.conf"))
    assert isolated == [f"chronolet@{group}.service.d" for group in ("events", "keeper", "prober")]
