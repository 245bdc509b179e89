"""Merges the responses of device plugins into the options that a container starts with. Pure.

Input: the plugins' responses. Output: one response. Source: deviceRunContainerOptions in
pkg/kubelet/cm/devicemanager/pod_devices.go: of several entries with one name, the first wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from chronolet_schemas.devices import Answer, DeviceNode, Mount

CDI_ANNOTATION = "cdi.k8s.io/"
"""Prefix of annotations whose values are comma-separated names of CDI devices."""

_At = TypeVar("_At", Mount, DeviceNode)


def merged(answers: Iterable[Answer]) -> Answer:
    """Merge responses: for each variable, annotation and container path, the first response that sets it wins. CDI
    devices are listed once.
    """
    each = list(answers)
    backwards = each[::-1]
    return Answer(
        envs={name: value for one in backwards for name, value in one.envs.items()},
        mounts=_first(mount for one in each for mount in one.mounts),
        devices=_first(node for one in each for node in one.devices),
        annotations={name: value for one in backwards for name, value in one.annotations.items()},
        cdi_devices=tuple(dict.fromkeys(name for one in each for name in one.cdi_devices)),
    )


def cdi_names(answer: Answer) -> tuple[str, ...]:
    """Return the CDI devices in a response: from its field `cdi_devices`, and from annotations, which plugins used
    before the kubelet had that field; runtimes accept both. Source: WithCDI of containerd, ParseAnnotations of CDI.
    """
    noted = [value for name, value in sorted(answer.annotations.items()) if name.startswith(CDI_ANNOTATION)]
    return tuple(dict.fromkeys((*answer.cdi_devices, *(name for value in noted for name in value.split(",")))))


def _first(found: Iterable[_At]) -> tuple[_At, ...]:
    by_path: dict[str, _At] = {}
    for one in found:
        by_path.setdefault(one.container_path, one)
    return tuple(by_path.values())
