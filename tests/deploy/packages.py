"""Builds the Debian package of this source tree, and simulates machines on which dpkg installs it.

Input: scripts/deb. Output: the package's fields and files; a `Machine`, where maintainer scripts run for real with
busybox as their shell, while systemd's commands, docker and python3 only record their calls. Next: the tests in this
folder.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

from tests.support.scratch import hang_limit

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("basename", "cat", "cut", "find", "grep", "rm", "rmdir", "sh", "sort", "umount", "wc")
_RECORDER = """#!/bin/sh
echo "$(basename $0) $*" >>/calls
case "$0 $*" in
    *systemctl\\ list-units*) cat /units 2>/dev/null ;;
    *deb-systemd-helper\\ --quiet\\ was-enabled*) [ ! -e /disabled ] ;;
esac
"""


def run(*words: str | Path, cwd: Path = ROOT) -> str:
    """Run a program to its end and return its standard output. Raises AssertionError with its output if it fails."""
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=hang_limit(240), check=False)
    assert done.returncode == 0, f"{words}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(folder: Path) -> Path:
    """Build the package of this source tree; return its path."""
    return Path(run("scripts/deb", "--out", folder).strip())


def repacked(package: Path, version: str, folder: Path) -> Path:
    """Return a copy of a package that has another version, but the same files."""
    tree = folder / version
    run("dpkg-deb", "-R", package, tree)
    control = tree / "DEBIAN" / "control"
    fields = control.read_text().splitlines(keepends=True)
    control.write_text("".join(f"Version: {version}\n" if one.startswith("Version:") else one for one in fields))
    copy = folder / f"chronolet_{version}.deb"
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, copy)
    shutil.rmtree(tree)
    return copy


class Machine:
    """A folder in which dpkg installs packages as if on a machine that runs systemd."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in (
            "bin",
            "dev",
            "usr/bin",
            "proc",
            "run/systemd/system",
            "var/lib/dpkg/info",
            "var/lib/dpkg/updates",
        ):
            (root / folder).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        os.mknod(root / "dev" / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        busybox = shutil.which("busybox")
        assert busybox is not None, "busybox-static is missing; scripts/test installs it"
        shutil.copy(busybox, root / "bin" / "busybox")
        for tool in TOOLS:
            (root / "bin" / tool).symlink_to("busybox")
        for recorder in ("systemctl", "deb-systemd-helper", "deb-systemd-invoke", "docker", "python3"):
            path = root / "usr/bin" / recorder
            path.write_text(_RECORDER)
            path.chmod(0o755)

    def dpkg(self, *words: str | Path) -> list[str]:
        """Run dpkg on this machine; return the recorded calls, one line for each: the command and its arguments."""
        # Dependencies are not installed, and files are not synced to disk, which would only take time.
        forced = ("--force-depends", "--force-unsafe-io", "--force-bad-path")
        run("dpkg", f"--root={self.root}", *forced, *words)
        calls = self.root / "calls"
        found = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return found

    def status(self) -> str:
        """Return the package's state in dpkg's database; empty if dpkg does not know the package."""
        query = ("dpkg-query", f"--admindir={self.root}/var/lib/dpkg", "-W", "-f", "${db:Status-Status}", "chronolet")
        return subprocess.run(query, capture_output=True, text=True, check=False).stdout

    def path(self, name: str) -> Path:
        """Return the real path of a file on this simulated machine."""
        return self.root / name.lstrip("/")

    def runs(self, *units: str) -> None:
        """Make systemctl list these units as running."""
        self.path("/units").write_text("".join(f"{unit} loaded active running text\n" for unit in units))
