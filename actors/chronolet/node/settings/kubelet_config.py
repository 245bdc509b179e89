"""Reads the fields of a KubeletConfiguration file that chronolet supports.

Input: a path and the settings' field names. Output: values by setting name, and a remark for each unsupported field.
Next: `resolving`. Source: kubelet.config.k8s.io/v1beta1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from chronolet.node.settings.values import SettingsError

Field = tuple[str, Callable[[str, Any], Any]]
"""A setting's name and its parser."""


def read(path: Path, fields: Mapping[str, Field]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return values by setting name, and a remark for each field not in `fields`. Raises SettingsError."""
    document = _load_yaml(path)
    found = (document.pop("apiVersion", None), document.pop("kind", None))
    if found != ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"):
        raise SettingsError(
            f"{path}: found apiVersion {found[0]!r}, kind {found[1]!r}, "
            "expected kubelet.config.k8s.io/v1beta1, KubeletConfiguration"
        )
    values: dict[str, Any] = {}
    remarks: list[str] = []
    for where, value in _leaves(document, fields):
        if where in fields:
            name, parse = fields[where]
            values[name] = parse(f"{path}: {where}", value)
        else:
            remarks.append(f"{path}: {where}: not used by chronolet")
    return values, tuple(remarks)


def _load_yaml(path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - slow to load, and rarely needed

    try:
        document = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise SettingsError(f"{path}: found {type(document).__name__}, expected a KubeletConfiguration")
    return document


def _leaves(document: Mapping[str, Any], fields: Collection[str], above: str = "") -> list[tuple[str, Any]]:
    """Return (path, value) for every leaf: a value that is not a map, an empty map, or a map whose path is in
    `fields`.
    """
    leaves: list[tuple[str, Any]] = []
    for name, value in document.items():
        path = f"{above}{name}"
        is_map = isinstance(value, dict) and value and path not in fields
        leaves += _leaves(value, fields, f"{path}.") if is_map else [(path, value)]
    return leaves
