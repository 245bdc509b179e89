"""Resolves the value of each setting from all sources.

Input: the given flags, the environment, a KubeletConfiguration file. Output: `Settings`, and remarks about unused
fields of the file. Precedence: flag, environment, file, default. Next: `wiring`, `cli`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from chronolet.kernel.storage.redis.urls import has_password
from chronolet.node.settings import kubelet_config
from chronolet.node.settings.gc import problem_of_collection
from chronolet.node.settings.http import check_http
from chronolet.node.settings.shares import check_shares
from chronolet.node.settings.table import REDIS_PASSWORD, SETTINGS, Settings
from chronolet.node.settings.values import Secret, SettingsError, read_secret


def default_root(*, root: bool) -> Path:
    """The default state folder."""
    return Path("/var/lib/chronolet") if root else Path("~/.local/state/chronolet").expanduser()


def hostname() -> str:
    """The node's default name: the hostname in lower case, as in the kubelet."""
    return socket.gethostname().strip().lower()


def resolve(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    config: Path | None = None,
    names: Collection[str] | None = None,
) -> tuple[Settings, tuple[str, ...]]:
    """Resolve the settings; also returns remarks about the file. Raises SettingsError.

    `flags` maps setting names to values; None or absent means not given. `names` restricts which settings are read from
    the environment, so that an invalid variable of another setting does not fail the caller.
    """
    fields = {one.field: (one.name, one.parse) for one in SETTINGS if one.field}
    in_file, remarks = ({}, ()) if config is None else kubelet_config.read(config, fields)
    values: dict[str, Any] = {"node": hostname(), "root_dir": default_root(root=os.geteuid() == 0)}
    for one in SETTINGS:
        if flags.get(one.name) is not None:
            values[one.name] = one.parse(one.flag, flags[one.name])
        elif environ.get(one.env) and (names is None or one.name in names):
            values[one.name] = one.parse(one.env, environ[one.env])
        elif one.name in in_file:
            values[one.name] = in_file[one.name]
    if values["root_dir"] != default_root(root=True):
        # A second node on the machine, or one without root, needs its own sockets.
        values.setdefault("kubelet_dir", values["root_dir"] / "kubelet")
    if values.get("redis"):
        values["redis_password"] = _redis_password(flags, environ, values)
    settings = Settings(**values)
    _check_pulls(settings)
    if settings.port:
        check_http(
            settings.address,
            settings.tls_cert_file,
            settings.tls_private_key_file,
            settings.client_ca_file,
            settings.http_token_file,
        )
    check_shares(settings.cpu_cfs_quota_period, settings.qos_reserved)
    if problem := problem_of_collection(settings.container_policy, settings.image_policy):
        raise SettingsError(problem)
    return settings, remarks


def _redis_password(flags: Mapping[str, Any], environ: Mapping[str, str], values: Mapping[str, Any]) -> Secret:
    """The Redis password from the file or the environment; empty if there is none. Raises SettingsError."""
    in_url = has_password(values["redis"])
    if in_url and flags.get("redis") is not None:
        raise SettingsError(
            "--redis: found a password, but every user of this machine can read a process's flags, expected it in a"
            f" file (--redis-password-file) or in the environment ({REDIS_PASSWORD}, or the URL in CHRONOLET_REDIS)"
        )
    file = values.get("redis_password_file")
    found = read_secret("--redis-password-file", file) if file else Secret(environ.get(REDIS_PASSWORD, ""))
    if in_url and found:
        where = "--redis-password-file" if file else REDIS_PASSWORD
        raise SettingsError(f"{where}: the URL of the Redis server also holds a password, expected only one of them")
    return found


def _check_pulls(settings: Settings) -> None:
    if settings.serialize_image_pulls and settings.max_parallel_image_pulls > 1:
        raise SettingsError(
            f"--max-parallel-image-pulls: found {settings.max_parallel_image_pulls}, "
            "which must not be above 1 unless --serialize-image-pulls is false"
        )
