"""What a container is started with, of all that its device plugins said. Pure.

Input: the answers of plugins. Output: one. Answers to: deviceRunContainerOptions in
pkg/kubelet/cm/devicemanager/pod_devices.go, where the first one of a name counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from chronolet_schemas.devices import Answer, DeviceNode, Mount

CDI_ANNOTATION = "cdi.k8s.io/"
"""How the names of annotations begin that hold names of CDI devices, by commas."""

_At = TypeVar("_At", Mount, DeviceNode)


def merged(answers: Iterable[Answer]) -> Answer:
    """All answers as one: a variable, an annotation and a path of the container are taken once, a CDI device too."""
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
    """The CDI devices of an answer: those that it names, and those of annotations by which plugins named them before
    the kubelet had a field for them; runtimes take both. Answers to: WithCDI of containerd, ParseAnnotations of CDI.
    """
    noted = [value for name, value in sorted(answer.annotations.items()) if name.startswith(CDI_ANNOTATION)]
    return tuple(dict.fromkeys((*answer.cdi_devices, *(name for value in noted for name in value.split(",")))))


def _first(found: Iterable[_At]) -> tuple[_At, ...]:
    by_path: dict[str, _At] = {}
    for one in found:
        by_path.setdefault(one.container_path, one)
    return tuple(by_path.values())
