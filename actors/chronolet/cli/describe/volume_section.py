"""Formats the volume section of `describe pod`.

Input: the volumes of a Pod. Output: lines in kubectl's format. Next: `pod_section`. Source: kubectl's pkg/describe
(describeVolumes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chronolet.cli.describe.layout import line, truth
from chronolet.cli.printing import table

Object = dict[str, Any]

_KINDS = {
    "hostPath": "HostPath (bare host directory volume)",
    "emptyDir": "EmptyDir (a temporary directory that shares a pod's lifetime)",
    "secret": "Secret (a volume populated by a Secret)",
    "configMap": "ConfigMap (a volume populated by a ConfigMap)",
    "projected": "Projected (a volume that contains injected data from multiple sources)",
    "downwardAPI": "DownwardAPI (a volume populated by information about the pod)",
    "persistentVolumeClaim": ("PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)"),
}


def described(volumes: Sequence[Object]) -> Iterator[str]:
    """Yield the lines of all volumes, or `<none>` if there are none."""
    if not volumes:
        yield line("Volumes", "<none>")
        return
    yield "Volumes:"
    for volume in volumes:
        yield f"  {volume['name']}:"
        sources = [(name, detail) for name, detail in volume.items() if name != "name"] or [("emptyDir", {})]
        for source, detail in sources:
            yield line("Type", _KINDS.get(source, _titled(source)), 4)
            yield from _DETAILS.get(source, _anything)(detail or {})


def _host_path(detail: Object) -> Iterator[str]:
    yield line("Path", detail.get("path", ""), 4)
    yield line("HostPathType", detail.get("type", ""), 4)


def _empty_dir(detail: Object) -> Iterator[str]:
    yield line("Medium", detail.get("medium", ""), 4)
    yield line("SizeLimit", str(detail.get("sizeLimit", "<unset>")), 4)


def _secret(detail: Object) -> Iterator[str]:
    yield line("SecretName", detail.get("secretName") or detail.get("name", ""), 4)
    yield line("Optional", truth(detail.get("optional")), 4)


def _config_map(detail: Object) -> Iterator[str]:
    yield line("Name", detail.get("name", ""), 4)
    yield line("Optional", truth(detail.get("optional")), 4)


def _projected(detail: Object) -> Iterator[str]:
    for source in detail.get("sources", []):
        if "secret" in source:
            yield from _secret(source["secret"])
        elif "configMap" in source:
            yield line("ConfigMapName", source["configMap"].get("name", ""), 4)
            yield line("Optional", truth(source["configMap"].get("optional")), 4)
        elif "downwardAPI" in source:
            yield line("DownwardAPI", "true", 4)
        else:
            yield line(_titled(next(iter(source), "unknown")), "true", 4)


def _downward_api(detail: Object) -> Iterator[str]:
    yield line("Items", "", 4)
    for item in detail.get("items", []):
        where = item.get("fieldRef", {}).get("fieldPath") or item.get("resourceFieldRef", {}).get("resource", "")
        yield f"      {table.plain(where)} -> {table.plain(item.get('path', ''))}"


def _claim(detail: Object) -> Iterator[str]:
    yield line("ClaimName", detail.get("claimName", ""), 4)
    yield line("ReadOnly", str(bool(detail.get("readOnly"))).lower(), 4)


def _anything(detail: Object) -> Iterator[str]:
    """Yield a line for each field of a volume source that is not honoured; nested values are not broken down."""
    for name, value in detail.items():
        yield line(_titled(name), str(value), 4)


_DETAILS: dict[str, Callable[[Object], Iterator[str]]] = {
    "hostPath": _host_path,
    "emptyDir": _empty_dir,
    "secret": _secret,
    "configMap": _config_map,
    "projected": _projected,
    "downwardAPI": _downward_api,
    "persistentVolumeClaim": _claim,
}


def _titled(name: str) -> str:
    return name[:1].upper() + name[1:]
