"""The content of the Debian package: the agent, its locked libraries, settings, owners, checksums and licences."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path

from tests.deploy.packages import ROOT, run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SITE = "usr/lib/chronolet/lib/python3.11/site-packages"


def python(unpacked: Path) -> str:
    return str(unpacked / "usr/lib/chronolet/bin/python")


def field(package: Path, name: str) -> str:
    return run("dpkg-deb", "-f", package, name).strip()


def test_the_version_is_the_projects(package: Path, unpacked: Path) -> None:
    assert re.sub(r"~", ".", field(package, "Version")) == PROJECT["version"]
    assert run(python(unpacked), "-I", unpacked / "usr/lib/chronolet/bin/chronolet", "--version") == (
        f"chronolet {PROJECT['version']}\n"
    )
    # dpkg must consider each release newer than the one before.
    for older, newer in (("0.1.0", field(package, "Version")), ("0.2.0~dev0", "0.2.0~rc1"), ("0.2.0~rc1", "0.2.0")):
        subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=True)


def test_all_files_belong_to_root_and_only_programs_are_executable(package: Path) -> None:
    listed = [line.split(maxsplit=5) for line in run("dpkg-deb", "-c", package).splitlines()]
    assert len(listed) > 1000
    assert {owner for _, owner, *_ in listed} == {"root/root"}
    assert not [line for line in listed if line[0][0] == "-" and line[0][8] == "w"], "writable by everyone"
    programs = [line[5] for line in listed if line[0].startswith("-rwx") and "/site-packages/" not in line[5]]
    assert programs == ["./usr/lib/chronolet/bin/chronolet", "./usr/lib/chronolet/libexec/stop-redis"]


def test_the_libraries_are_the_locked_ones(unpacked: Path) -> None:
    code = "import importlib.metadata as m; print([(d.metadata['Name'].lower(), d.version) for d in m.distributions()])"
    installed = dict(ast.literal_eval(run(python(unpacked), "-I", "-c", code)))
    assert installed.pop("chronolet") == PROJECT["version"]
    locked = dict(
        re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "requirements" / "runtime.txt").read_text(), re.MULTILINE)
    )
    assert len(installed) > 15
    normal = {re.sub(r"[-_.]+", "-", name): version for name, version in installed.items()}
    assert normal.items() <= {re.sub(r"[-_.]+", "-", name.lower()): version for name, version in locked.items()}.items()


def test_no_file_names_the_folder_in_which_it_was_built(unpacked: Path) -> None:
    settings = (unpacked / "usr/lib/chronolet/pyvenv.cfg").read_text()
    assert "home = /usr/bin\n" in settings
    compiled = unpacked / SITE / "chronolet/cli/__pycache__/loading.cpython-311.pyc"
    assert f"/{SITE}/chronolet/cli/loading.py".encode() in compiled.read_bytes()
    ours = [path for path in (unpacked / SITE).glob("chronolet*/**/*") if path.is_file()]
    assert len(ours) > 1000
    assert [path for path in ours if b"/tmp/tmp." in path.read_bytes()] == []


def test_every_module_is_compiled_for_the_packages_python(unpacked: Path) -> None:
    code = "import chronolet.node.main as m, importlib.util as u; print(m.__cached__, u.MAGIC_NUMBER)"
    cached, magic = run(python(unpacked), "-I", "-c", code).split(" ", 1)
    assert Path(cached).is_relative_to(unpacked)
    sources = list((unpacked / SITE / "chronolet").rglob("*.py"))
    assert len(sources) > 400
    for path in sources:
        compiled = path.parent / "__pycache__" / f"{path.stem}.cpython-311.pyc"
        head = compiled.read_bytes()[:8]
        # Flags 1: the file has a hash of its source instead of a time, and Python does not check the hash.
        assert (head[:4], head[4:]) == (ast.literal_eval(magic), b"\x01\x00\x00\x00"), compiled


def test_data_files_are_included(unpacked: Path) -> None:
    for tree in ("actors", "schemas"):
        files = [path.relative_to(ROOT / tree) for path in (ROOT / tree).rglob("*") if path.is_file()]
        data = [path for path in files if path.suffix not in (".py", ".pyc")]
        assert {"py.typed"} <= {path.name for path in data}
        assert [path for path in data if not (unpacked / SITE / path).exists()] == []
    assert (unpacked / SITE / "chronolet/kernel/storage/redis/functions/functions.lua").exists()


def test_a_module_next_to_the_user_is_not_loaded(unpacked: Path, tmp_path: Path) -> None:
    (tmp_path / "chronolet.py").write_text("raise SystemExit('hijacked')")
    launcher = unpacked / "usr/lib/chronolet/bin/chronolet"
    assert launcher.read_text().startswith("#!/usr/lib/chronolet/bin/python -I\n")
    done = subprocess.run(
        [python(unpacked), "-I", launcher, "--help"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Usage: chronolet [OPTIONS] COMMAND")


def test_settings_are_conffiles(package: Path, unpacked: Path) -> None:
    conffiles = run("dpkg-deb", "-I", package, "conffiles").split()
    assert conffiles == sorted(
        f"/{path.relative_to(unpacked)}" for path in (unpacked / "etc").rglob("*") if path.is_file()
    )
    assert "/etc/default/chronolet" in conffiles


def test_checksums_cover_every_file(package: Path, unpacked: Path, tmp_path: Path) -> None:
    sums = tmp_path / "md5sums"
    sums.write_text(run("dpkg-deb", "-I", package, "md5sums"))
    run("md5sum", "--quiet", "--strict", "-c", sums, cwd=unpacked)
    assert len(sums.read_text().splitlines()) == len(
        [p for p in unpacked.rglob("*") if p.is_file() and not p.is_symlink()]
    )


def test_every_library_states_its_licence(unpacked: Path) -> None:
    page = (unpacked / "usr/share/doc/chronolet/dependencies.md").read_text()
    folders = [path for path in (unpacked / SITE).glob("*.dist-info") if not path.name.startswith("chronolet-")]
    assert len(folders) > 15
    for folder in folders:
        name = folder.name.split("-")[0].replace("_", "-").lower()
        assert re.search(rf"^\| {re.escape(name)} \|", page, re.MULTILINE | re.IGNORECASE), name
