"""The findings of `chronolet check`, and their remedies."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import Store, StoreUnreachable
from chronolet.node import check
from chronolet.node.settings.table import Settings
from chronolet.ports.runtime.runtime import Engine, Refusal, Runtime


def settings(folder: Path, **fields: str) -> Settings:
    return Settings(node="n", root_dir=folder, **fields)  # type: ignore[arg-type]


class OldRuntime(FakeRuntime):
    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.found = engine

    def engine(self) -> Engine:
        return self.found


class SickStore(MemoryStore):
    def __init__(self, error: Exception | None = None, warnings: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.error = error
        self.warnings = warnings

    def check(self) -> tuple[str, ...]:
        if self.error:
            raise self.error
        return self.warnings


def docker(runtime: Runtime, folder: Path) -> check.Finding:
    return check.docker(settings(folder), lambda _: runtime)


def redis(store: Store, folder: Path) -> check.Finding:
    return check.redis(settings(folder, redis="redis://r"), lambda _: store)


def engine(version: str, **fields: str) -> OldRuntime:
    return OldRuntime(Engine(name="docker", version=version, api_version="1.41", **fields))


def test_a_recent_docker_is_ok(tmp_path: Path) -> None:
    found = docker(engine("20.10.24+dfsg1", cgroup_version="1", cgroup_driver="cgroupfs"), tmp_path)
    assert found.verdict == "ok"
    assert found.text == "docker 20.10.24+dfsg1 at unix:///var/run/docker.sock, cgroup v1, cgroupfs driver"


@pytest.mark.parametrize("version", ["19.03.5", "20.9", "1.13.1", "", "dev"])
def test_docker_too_old_is_missing(version: str, tmp_path: Path) -> None:
    found = docker(engine(version), tmp_path)
    assert (found.verdict, found.remedy) == ("missing", "upgrade the Docker Engine")
    assert "expected 20.10 or newer" in found.text


def test_docker_without_cgroups_is_a_warning(tmp_path: Path) -> None:
    assert docker(engine("27.1", cgroup_driver="none"), tmp_path).verdict == "warning"


def test_an_absent_or_forbidden_docker_has_a_remedy(tmp_path: Path) -> None:
    fake = FakeRuntime()
    fake.go_down()
    assert "apt-get install docker.io" in docker(fake, tmp_path).remedy
    denied = FakeRuntime()
    denied.refuse("engine", Refusal("denied", "permission denied"))
    assert docker(denied, tmp_path).remedy == "run as root or as a member of the group docker"


def test_redis_that_answers_is_ok_or_warned_about(tmp_path: Path) -> None:
    assert redis(SickStore(), tmp_path).verdict == "ok"
    found = redis(SickStore(warnings=("appendonly is off",)), tmp_path)
    assert (found.verdict, found.text) == ("warning", "appendonly is off")


def test_redis_that_cannot_serve_is_missing(tmp_path: Path) -> None:
    found = redis(SickStore(StoreUnreachable("Redis at r is 6.2, expected 7.0", healing=False)), tmp_path)
    assert (found.verdict, found.text) == ("missing", "Redis at r is 6.2, expected 7.0")


def test_without_a_redis_url_a_server_binary_is_searched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_store(_: Settings) -> Store:
        raise AssertionError

    assert "to be started by the agent" in check.redis(settings(tmp_path), no_store).text
    server = tmp_path / "bin" / "redis-server"
    server.parent.mkdir()
    monkeypatch.setenv("PATH", str(server.parent))
    absent = check.redis(settings(tmp_path), no_store)
    assert (absent.verdict, absent.text) == ("missing", "no redis-server or valkey-server on PATH")
    assert "apt-get install redis-server" in absent.remedy
    server.write_text("#!/bin/sh\necho 'Redis server v=6.2.7 sha=0'\n")
    server.chmod(0o755)
    assert check.redis(settings(tmp_path), no_store).text == f"{server} is 6.2.7, expected 7.0 or newer"


def test_cgroups(tmp_path: Path) -> None:
    mounts, filesystems = tmp_path / "mounts", tmp_path / "filesystems"
    assert check.cgroup(filesystems, mounts).text == "not in this kernel"
    filesystems.write_text("nodev\tcgroup\nnodev\tcgroup2\n")
    mounts.write_text("proc /proc proc rw 0 0\n")
    assert check.cgroup(filesystems, mounts).verdict == "missing"
    mounts.write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    assert check.cgroup(filesystems, mounts).text == "version 2"
    mounts.write_text("cgroup2 /unified cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n")
    assert check.cgroup(filesystems, mounts).text == "version 1"


def test_disk(tmp_path: Path) -> None:
    assert check.disk(settings(tmp_path / "not" / "yet")).verdict == "ok"
    file = tmp_path / "file"
    file.write_text("")
    assert check.disk(settings(file)).text == f"{file}: not writable"
    assert check.disk(settings(tmp_path), least_bytes=2**60).verdict == "missing"


def test_manifests(tmp_path: Path) -> None:
    assert check.manifests(tmp_path).verdict == "ok"
    assert check.manifests(tmp_path / "none").text.endswith("not found")


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4), st.sampled_from(["", "-rc1", "+dfsg1", "~x.9"]))
def test_versions_are_compared_by_their_numbers(parts: list[int], tail: str) -> None:
    assert check.numbers(".".join(map(str, parts)) + tail) == tuple(parts)


@given(st.text())
def test_any_text_is_accepted_as_a_version(text: str) -> None:
    assert all(part >= 0 for part in check.numbers(text))
