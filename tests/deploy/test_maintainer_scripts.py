"""Installation, upgrade, removal and purge by dpkg: which units are stopped and started, and which files remain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.packages import Machine, repacked

SERVICE = "chronolet.service"
DATA = "var/lib/chronolet/redis/appendonly.aof"


@pytest.fixture(scope="module")
def releases(package: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two releases, the older one first."""
    folder = tmp_path_factory.mktemp("releases")
    return repacked(package, "0.2.0~dev1", folder), repacked(package, "0.2.0", folder)


def systemctl(calls: list[str]) -> list[str]:
    """Return the calls that start and stop units."""
    words = [call.split(maxsplit=1) for call in calls]
    return [rest for name, rest in words if name in ("systemctl", "deb-systemd-invoke") and rest.startswith("st")]


def with_data(machine: Machine) -> Path:
    path = machine.path(DATA)
    path.parent.mkdir(parents=True)
    path.write_text("the log")
    return path


def test_the_first_installation_enables_and_starts_the_service(machine: Machine, releases: tuple[Path, Path]) -> None:
    calls = machine.dpkg("-i", releases[0])
    assert machine.status() == "installed"
    assert systemctl(calls) == [f"start {SERVICE}"]
    assert f"deb-systemd-helper enable {SERVICE}" in calls
    assert calls.index("systemctl --system daemon-reload") < calls.index(f"deb-systemd-invoke start {SERVICE}")


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 0)], ids=["upgrade", "downgrade", "reinstallation"])
def test_what_ran_before_a_change_of_version_runs_after_it(
    machine: Machine, releases: tuple[Path, Path], order: tuple[int, int]
) -> None:
    before, after = (releases[index] for index in order)
    machine.dpkg("-i", before)
    data = with_data(machine)
    machine.runs("chronolet@node.service", "chronolet@prober.service")
    calls = machine.dpkg("-i", after)
    names = "chronolet@node.service chronolet@prober.service"
    # Stopped before the first file is replaced, so that no process mixes the modules of two versions.
    assert systemctl(calls) == [f"stop {names}", f"start {names}"]
    assert not [call for call in calls if call.startswith("python3")], "its Redis keeps running"
    assert data.read_text() == "the log"
    assert not machine.path("/run/chronolet.ran").exists()


def test_a_service_that_was_stopped_or_disabled_stays_so(machine: Machine, releases: tuple[Path, Path]) -> None:
    machine.dpkg("-i", releases[0])
    machine.path("/disabled").touch()
    calls = machine.dpkg("-i", releases[1])
    assert systemctl(calls) == []
    assert f"deb-systemd-helper enable {SERVICE}" not in calls


def test_changed_settings_survive_an_upgrade(machine: Machine, releases: tuple[Path, Path]) -> None:
    machine.dpkg("-i", releases[0])
    settings = machine.path("/etc/default/chronolet")
    settings.write_text("CHRONOLET_REDIS=redis://127.0.0.1\n")
    machine.dpkg("-i", releases[1])
    assert settings.read_text() == "CHRONOLET_REDIS=redis://127.0.0.1\n"


def test_removal_keeps_data_and_settings_and_purge_removes_them(machine: Machine, releases: tuple[Path, Path]) -> None:
    machine.dpkg("-i", releases[0])
    data = with_data(machine)
    manifest = machine.path("/etc/chronolet/manifests/web.yaml")
    manifest.write_text("kind: Pod\n")
    machine.runs(SERVICE)
    calls = machine.dpkg("-r", "chronolet")
    assert machine.status() == "config-files"
    assert systemctl(calls) == [f"stop {SERVICE}"]
    # Without agents, nothing supervises their Redis, so it is stopped too.
    assert [call for call in calls if "OwnServer" in call or call.startswith("python3 -I -c")]
    assert data.exists()
    assert machine.path("/etc/default/chronolet").exists()
    assert not machine.path("/usr/lib/chronolet").exists(), "nothing was written next to the package's files"

    calls = machine.dpkg("-P", "chronolet")
    assert machine.status() in ("", "not-installed")
    assert f"deb-systemd-helper purge {SERVICE}" in calls
    assert not machine.path("/var/lib/chronolet").exists()
    assert not machine.path("/etc/default/chronolet").exists()
    assert manifest.exists(), "a file of the administrator"
    assert sorted(path.name for path in manifest.parent.parent.iterdir()) == ["manifests"]


def test_an_installation_after_a_removal_starts_the_service(machine: Machine, releases: tuple[Path, Path]) -> None:
    machine.dpkg("-i", releases[0])
    machine.dpkg("-r", "chronolet")
    assert systemctl(machine.dpkg("-i", releases[0])) == [f"start {SERVICE}"]


def test_purge_leaves_nothing_and_spares_other_folders(machine: Machine, releases: tuple[Path, Path]) -> None:
    machine.dpkg("-i", releases[0])
    with_data(machine)
    other = machine.path("/srv/chronolet/redis/appendonly.aof")
    other.parent.mkdir(parents=True)
    other.write_text("a state folder that a setting names")
    machine.path("/etc/default/chronolet").write_text("CHRONOLET_ROOT_DIR=/srv/chronolet\n")
    calls = machine.dpkg("-P", "chronolet")
    assert [call for call in calls if call.endswith("/srv/chronolet")], "the Redis of that folder is stopped"
    assert other.exists()
    left = [path for path in machine.root.rglob("*chronolet*") if "dpkg" not in path.parts and path != other.parents[1]]
    assert left == []
