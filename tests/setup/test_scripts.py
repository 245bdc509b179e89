"""The scripts report what they do, make only changes that are necessary, and change nothing when they run again."""

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.scratch import hang_limit

ROOT = Path(__file__).resolve().parents[2]
LIB = ROOT / "scripts" / "lib.sh"

# A build backend for an empty package, so that pip can install a project without an index.
BACKEND = """
import zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "nothing-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("nothing-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: nothing\\nVersion: 1\\n")
        wheel.writestr("nothing-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("nothing-1.dist-info/RECORD", "")
    return name
"""
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "nothing"
version = "1"
"""


def bash(script: str, *, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=cwd,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=hang_limit(60),
        check=False,
    )


def bash_files() -> list[Path]:
    folders = ("scripts", ".ci", "tests/setup", "deploy/debian", "compose")
    files = [path for name in folders for path in sorted((ROOT / name).iterdir())]
    return [path for path in files if path.is_file() and _is_bash(path)]


def _is_bash(path: Path) -> bool:
    return path.suffix == ".sh" or path.read_bytes().startswith((b"#!/usr/bin/env bash", b"#!/bin/sh"))


def test_shellcheck_finds_nothing() -> None:
    files = bash_files()
    assert {path.name for path in files} >= {
        "run",
        "test",
        "lock",
        "images",
        "lib.sh",
        "fresh_machine",
        "cgroup2_machine",
        "package_machine",
        "deb",
        "wheel",
    }
    checked = subprocess.run(["shellcheck", "-x", *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    "script",
    [
        *("scripts/run", "scripts/test", "scripts/lock", "scripts/wheel", "scripts/deb"),
        *("tests/setup/fresh_machine", "tests/setup/cgroup2_machine", "tests/setup/package_machine"),
        *("tests/setup/previous_release", "compose/build", "compose/certificates"),
    ],
)
def test_help_sets_nothing_up(script: str) -> None:
    result = bash(f"{script} --help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"usage: {script} [")


def test_run_names_a_missing_folder() -> None:
    result = bash("scripts/run /does/not/exist")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "error: /does/not/exist: not a folder; it should hold Pod manifests (*.yaml, *.json)\n"


# -- Python ------------------------------------------------------------------------------------------------------------


def create_project(folder: Path) -> Path:
    """Write a project without dependencies for scripts/lib.sh. An existing venv is kept."""
    (folder / "scripts").mkdir(exist_ok=True)
    (folder / "scripts" / "lib.sh").write_bytes(LIB.read_bytes())
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "backend.py").write_text(BACKEND)
    (folder / "requirements").mkdir(exist_ok=True)
    for name in ("runtime", "build", "dev"):
        (folder / "requirements" / f"{name}.txt").write_text("# nothing\n")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without a venv."""
    return create_project(tmp_path)


@pytest.fixture(scope="module")
def folder_with_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with an empty venv, shared because making a venv takes five seconds of CPU time."""
    folder = tmp_path_factory.mktemp("made") / "project"
    folder.mkdir()
    create_project(folder)
    (folder / "backend.py").write_text("raise RuntimeError('nothing is to be installed yet')")
    failed = bash("source scripts/lib.sh; ensure_venv", cwd=folder, PYTHON=sys.executable)
    assert failed.returncode != 0
    assert "nothing is to be installed yet" in failed.stderr
    assert (folder / ".venv" / "bin" / "pip").exists()
    return folder


@pytest.fixture
def venv_project(folder_with_venv: Path) -> Path:
    """A project with a venv whose packages are out of date."""
    for stamp in (folder_with_venv / ".venv").glob(".installed-*"):
        stamp.unlink()
    return create_project(folder_with_venv)


def test_the_venv_is_made_once_and_again_after_a_change(project: Path) -> None:
    ensure = "source scripts/lib.sh; ensure_venv"

    def steps_of(script: str = ensure) -> list[str]:
        result = bash(script, cwd=project, PYTHON=sys.executable)
        assert result.returncode == 0, result.stderr
        return [" ".join(line.split()[1:3]) for line in result.stderr.splitlines()]

    assert steps_of() == ["Python: making", "Python: installing"]
    assert steps_of() == []
    (project / "pyproject.toml").write_text(PYPROJECT + "dependencies = []\n")
    assert steps_of() == ["Python: installing"]
    assert steps_of() == []
    (project / "requirements" / "runtime.txt").write_text("# nothing else\n")
    assert steps_of() == ["Python: installing"]
    assert steps_of(f"{ensure} dev") == ["Python: installing"]
    assert steps_of() == []
    (project / "requirements" / "dev.txt").write_text("# nothing else\n")
    assert steps_of() == []
    assert steps_of(f"{ensure} dev") == ["Python: installing"]
    (project / ".venv" / "bin" / "python").unlink()
    assert steps_of() == ["Python: making", "Python: installing"]


def test_the_venv_of_another_folder_is_not_touched(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "kept").touch()
    (project / ".venv").symlink_to(other)
    refused = bash("source scripts/lib.sh; ensure_venv", cwd=project, PYTHON=sys.executable)
    assert refused.returncode == 1
    assert f".venv is a link to {other}" in refused.stderr
    assert [one.name for one in other.iterdir()] == ["kept"]


def test_a_failed_installation_shows_pips_output_and_is_retried(venv_project: Path) -> None:
    (venv_project / "backend.py").write_text("raise RuntimeError('no such luck')")
    for _ in range(2):
        result = bash("source scripts/lib.sh; ensure_venv", cwd=venv_project, PYTHON=sys.executable)
        assert result.returncode != 0
        assert "no such luck" in result.stderr


def wheel_in(index: Path, name: str, version: str, *headers: str) -> Path:
    """Write a metadata-only wheel to a folder that pip uses as an index, and return its path."""
    index.mkdir(exist_ok=True)
    wheel = index / f"{name}-{version}-py3-none-any.whl"
    metadata = ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *headers, "")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(metadata))
        archive.writestr(
            f"{name}-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-{version}.dist-info/RECORD", "")
    return wheel


def test_a_package_with_another_hash_is_not_installed(venv_project: Path, tmp_path: Path) -> None:
    wheel = wheel_in(tmp_path / "index", "thing", "1")
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()

    def install(digest: str) -> subprocess.CompletedProcess[str]:
        (venv_project / "requirements" / "runtime.txt").write_text(f"thing==1 --hash=sha256:{digest}\n")
        # The index is the user's choice: scripts/lib.sh and the lock files name none.
        environment = {"PYTHON": sys.executable, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheel.parent)}
        return bash("source scripts/lib.sh; ensure_venv", cwd=venv_project, **environment)

    refused = install("0" * 64)
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr
    accepted = install(right)
    assert accepted.returncode == 0, accepted.stderr


def test_versions_published_after_the_lock_are_not_installed(venv_project: Path, tmp_path: Path) -> None:
    """This also holds if a locked package requires another one with an extra, which pip would resolve by itself."""
    index = tmp_path / "index"
    wheels = [
        wheel_in(index, "whole", "1", "Requires-Dist: part[more]>=1"),
        wheel_in(index, "part", "1", "Provides-Extra: more"),
    ]
    wheel_in(index, "part", "2", "Provides-Extra: more")
    names = [wheel.name.split("-")[0] for wheel in wheels]
    digests = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels]
    locked = [f"{name}==1 --hash=sha256:{digest}\n" for name, digest in zip(names, digests, strict=True)]
    (venv_project / "requirements" / "runtime.txt").write_text("".join(locked))
    environment = {"PYTHON": sys.executable, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}
    result = bash("source scripts/lib.sh; ensure_venv; .venv/bin/pip list", cwd=venv_project, **environment)
    assert result.returncode == 0, result.stderr
    assert [line.split()[1] for line in result.stdout.splitlines() if line.startswith(("part", "whole"))] == ["1", "1"]


# -- Debian's packages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "version", "will_do"),
    [
        ("redis-server", "Redis server v=7.0.15 sha=0:0 malloc=x bits=64", True),
        ("redis-server", "Redis server v=10.0.1 sha=0:0 malloc=x bits=64", True),
        ("redis-server", "Redis server v=6.0.16 sha=0:0 malloc=x bits=64", False),
        ("valkey-server", "Server v=8.0.1 sha=0:0 malloc=x bits=64", True),
        ("another-server", "", False),
    ],
)
def test_a_redis_without_functions_is_not_used(tmp_path: Path, program: str, version: str, will_do: bool) -> None:
    server = tmp_path / program
    server.write_text(f"#!/bin/sh\necho '{version}'\n")
    server.chmod(0o755)
    result = bash(f"source {LIB}; PATH={tmp_path}; if redis_will_do; then echo yes; else echo no; fi")
    assert result.stdout == ("yes\n" if will_do else "no\n"), result.stderr


def test_apt_may_start_docker_but_no_redis(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    steps = f"""
        source {LIB}
        POLICY={policy}
        hold_back_redis
        for service in redis-server redis-server.service docker-registry prometheus docker docker.service; do
            status=0; $POLICY $service start || status=$?
            echo "$service $status"
        done
        release_redis
    """
    result = bash(steps)
    held_back = ["redis-server", "redis-server.service", "docker-registry", "prometheus"]
    expected = [*(f"{name} 101" for name in held_back), "docker 0", "docker.service 0"]
    assert result.stdout.splitlines() == expected, result.stderr
    assert not policy.exists()


def test_an_existing_policy_is_not_changed(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("the machine's own")
    assert bash(f"source {LIB}; POLICY={policy}; hold_back_redis; release_redis").returncode == 0
    assert policy.read_text() == "the machine's own"


# -- Docker ------------------------------------------------------------------------------------------------------------

# An isolated machine for dockerd: no service manager, no network, an empty /run and /var/lib/docker. When its first
# process exits, all other processes are killed, including dockerd.
ISOLATION = ("--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
ISOLATED_SETUP = """
    mount --make-rprivate /
    mount -t tmpfs tmpfs /run
    mkdir -p /var/lib/docker
    mount -t tmpfs tmpfs /var/lib/docker
    ip link set lo up
"""


def users_venv(folder: Path) -> Path:
    """Make a venv like the one that `scripts/run` makes, in which packages for tests cannot be imported."""
    for name in ("pytest", "hypothesis"):
        (folder / "lacking" / name).mkdir(parents=True)
        (folder / "lacking" / name / "__init__.py").write_text(f'raise ModuleNotFoundError("{name}: not installed")')
    python = folder / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder}/lacking exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder / "venv"


@pytest.mark.docker
def test_dockerd_is_started_by_hand_once(tmp_path: Path) -> None:
    steps = f"""
        {ISOLATED_SETUP}
        source {LIB}
        VENV={users_venv(tmp_path)}
        ensure_docker
        cat /run/docker.pid; echo
        ensure_docker
        cat /run/docker.pid; echo
        ensure_images
    """
    (tmp_path / "steps").write_text(steps)
    environment = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
    result = subprocess.run(
        ["unshare", *ISOLATION, "bash", "-euo", "pipefail", str(tmp_path / "steps")],
        env=environment | {"CHRONOLET_ROOT_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=hang_limit(60),
        check=False,
    )
    assert result.returncode == 0, result.stderr
    first, second = result.stdout.split()
    assert first == second
    assert [line for line in result.stderr.splitlines() if line.startswith("==>")] == [
        f"==> Docker: no service manager here, so dockerd is started by hand; its log: {tmp_path}/dockerd.log",
        "==> Docker: answers at its usual socket",
        "==> Image chronolet/pause:1: made",
        "==> Image chronolet/busybox:1: made",
    ]


def test_an_unreachable_docker_host_is_named(tmp_path: Path) -> None:
    host = f"unix://{tmp_path}/none"
    result = bash(f"source {LIB}; VENV={sys.prefix}; ensure_docker", DOCKER_HOST=host)
    assert (result.returncode, result.stderr) == (1, f"error: Docker does not answer at DOCKER_HOST={host}\n")


@pytest.mark.docker
def test_images_are_made_once_unless_forced() -> None:
    with private_docker(images=False) as engine:
        assert _load_images(engine) == ["made", "made"]
        ids = _image_ids(engine)
        assert _load_images(engine) == ["is there", "is there"]
        assert _image_ids(engine) == ids
        assert _load_images(engine, "--force") == ["made", "made"]


def _load_images(engine: PrivateDocker, *options: str) -> list[str]:
    command = [sys.executable, str(ROOT / "scripts" / "load_images.py"), "--host", engine.host, *options]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split(": ")[1] for line in printed.splitlines()]


def _image_ids(engine: PrivateDocker) -> set[str]:
    ids = {image["Id"] for image in engine.api().images()}
    assert len(ids) == 2
    return ids
