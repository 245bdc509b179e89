"""Resolves the value of each setting from all sources.

Input: the given flags, the environment, a KubeletConfiguration file. Output: `Settings`, and remarks about unused
fields of the file. Precedence: flag, environment, file, default. Next: `wiring`, `cli`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from chronolet.node.settings import kubelet_config
from chronolet.node.settings.common import completed, found
from chronolet.node.settings.gc import problem_of_collection
from chronolet.node.settings.http import check_http
from chronolet.node.settings.settings import Settings
from chronolet.node.settings.shares import check_shares
from chronolet.node.settings.table import SETTINGS
from chronolet.node.settings.values import SettingsError


def resolve(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    config: Path | None = None,
    names: Collection[str] | None = None,
) -> tuple[Settings, tuple[str, ...]]:
    """Resolve the settings; return them and the remarks about the file. Raises SettingsError.

    `flags` maps setting names to values; None or absent means not given. `names` restricts which settings are read from
    the environment, so that an invalid variable of another setting does not make the call fail.
    """
    fields = {one.field: (one.name, one.parse) for one in SETTINGS if one.field}
    in_file, remarks = ({}, ()) if config is None else kubelet_config.read(config, fields)
    settings = completed({**in_file, **found(SETTINGS, flags, environ, names)}, flags, environ)
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


def _check_pulls(settings: Settings) -> None:
    if settings.serialize_image_pulls and settings.max_parallel_image_pulls > 1:
        raise SettingsError(
            f"--max-parallel-image-pulls: found {settings.max_parallel_image_pulls}, "
            "which must not be above 1 unless --serialize-image-pulls is false"
        )
