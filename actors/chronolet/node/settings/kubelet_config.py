"""A KubeletConfiguration file, as far as it says something that chronolet has.

Comes in: a path and the settings' field names. Goes out: values by setting name, and a remark for each field in vain.
Next: `settings`. Source: kubelet.config.k8s.io/v1beta1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from chronolet.node.settings.values import SettingsError

Field = tuple[str, Callable[[str, Any], Any]]
"""The setting's name, and its parser."""


def read(path: Path, fields: Mapping[str, Field]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Values by setting name, and one remark for each field that is not one of `fields`."""
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
    """(path, value) of everything that is not a map with something in it; a map that is a field is one value."""
    leaves: list[tuple[str, Any]] = []
    for name, value in document.items():
        path = f"{above}{name}"
        is_map = isinstance(value, dict) and value and path not in fields
        leaves += _leaves(value, fields, f"{path}.") if is_map else [(path, value)]
    return leaves
