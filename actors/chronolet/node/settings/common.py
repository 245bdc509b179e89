"""The settings with which a command finds a node's log and its Docker Engine.

Input: the given flags, the environment. Output: `Settings`, without loading the settings table. Next: `cli.options`;
`table` and `resolving`, which add the other settings.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from chronolet import common_flags
from chronolet.common_flags import REDIS_PASSWORD
from chronolet.kernel.storage.redis.urls import has_password
from chronolet.node.settings.setting import Setting
from chronolet.node.settings.settings import Settings
from chronolet.node.settings.values import (
    Secret,
    SettingsError,
    archive_place,
    folder,
    read_secret,
    redis_server,
    secret_file,
    text,
    url,
)

DOCKER = Setting(
    "docker",
    "--docker",
    "DOCKER_HOST",
    "Docker Engine to use [default: unix:///var/run/docker.sock]",
    url("unix", "tcp", "http", "https", "ssh"),
    metavar="URL",
)
MACHINE_ID_FILE = Setting(
    "machine_id_file",
    "--machine-id-file",
    "CHRONOLET_MACHINE_ID_FILE",
    "file that holds the machine's id; a node is tied to one machine and one Docker Engine [default: /etc/machine-id]",
    folder,
    metavar="FILE",
)
EVERYWHERE = (
    Setting(**common_flags.REDIS._asdict(), parse=redis_server),
    Setting(**common_flags.REDIS_PASSWORD_FILE._asdict(), parse=secret_file),
    Setting(**common_flags.ROOT_DIR._asdict(), parse=folder),
    Setting(**common_flags.ARCHIVE._asdict(), parse=archive_place),
    Setting(**common_flags.NODE._asdict(), parse=text),
)
"""The settings that every command accepts."""
COMMON = (*EVERYWHERE, DOCKER, MACHINE_ID_FILE)
_NAMES = frozenset(one.name for one in COMMON)


def is_common(name: str) -> bool:
    """Return whether `resolve_common` resolves the setting named `name`."""
    return name in _NAMES


def default_root(*, root: bool) -> Path:
    """Return the default state folder, for root or for another user."""
    return Path("/var/lib/chronolet") if root else Path("~/.local/state/chronolet").expanduser()


def hostname() -> str:
    """Return the node's default name: the hostname in lower case, as in the kubelet."""
    return socket.gethostname().strip().lower()


def resolve_common(flags: Mapping[str, Any], environ: Mapping[str, str], names: Collection[str]) -> Settings:
    """Resolve the settings in COMMON; all others have their defaults. Raises SettingsError."""
    return completed(found(COMMON, flags, environ, names), flags, environ)


def found(
    settings: Iterable[Setting], flags: Mapping[str, Any], environ: Mapping[str, str], names: Collection[str] | None
) -> dict[str, Any]:
    """Parse the given flags and environment variables; returns values by setting name. Unless `names` is None, the
    variables of settings that are not in `names` are ignored. Raises SettingsError.
    """
    values: dict[str, Any] = {}
    for one in settings:
        if flags.get(one.name) is not None:
            values[one.name] = one.parse(one.flag, flags[one.name])
        elif environ.get(one.env) and (names is None or one.name in names):
            values[one.name] = one.parse(one.env, environ[one.env])
    return values


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0  # `bundle open` also runs where there is no such user


def completed(values: Mapping[str, Any], flags: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """Complete the settings with the defaults that depend on the machine or on other settings. Raises SettingsError."""
    defaults = {"node": hostname(), "root_dir": default_root(root=_is_root())}
    known: dict[str, Any] = {**defaults, **values}
    if known["root_dir"] != default_root(root=True):
        # A second node on the machine, or one without root, needs its own sockets.
        known.setdefault("kubelet_dir", known["root_dir"] / "kubelet")
    if known.get("redis"):
        known["redis_password"] = _redis_password(flags, environ, known)
    return Settings(**known)


def _redis_password(flags: Mapping[str, Any], environ: Mapping[str, str], values: Mapping[str, Any]) -> Secret:
    """Return the Redis password from the file or the environment; empty if there is none. Raises SettingsError."""
    in_url = has_password(values["redis"])
    if in_url and flags.get("redis") is not None:
        raise SettingsError(
            "--redis: found a password, but every user of this machine can read a process's flags, expected it in a"
            f" file (--redis-password-file) or in the environment ({REDIS_PASSWORD}, or the URL in CHRONOLET_REDIS)"
        )
    file = values.get("redis_password_file")
    password = read_secret("--redis-password-file", file) if file else Secret(environ.get(REDIS_PASSWORD, ""))
    if in_url and password:
        where = "--redis-password-file" if file else REDIS_PASSWORD
        raise SettingsError(f"{where}: the URL of the Redis server also holds a password, expected only one of them")
    return password
