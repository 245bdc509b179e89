"""Translates the answers of device plugins into a container's spec.

Input: the plugins' answers, the engine, the host's CDI specifications. Output: `DeviceAdditions`; `Refusal`.
Next: `containers`, `specs`. Source: pkg/kubelet/cm/devicemanager/manager.go (deviceRunContainerOptions) and
kubelet_pods.go (GenerateRunContainerOptions).

The pod's own variables and mounts take precedence over those of plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from chronolet.pod import wanted
from chronolet.ports.devices.cdi import Cdi, CdiRefusal, Edits
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import Device, Mount, Refusal
from chronolet.rules.device_options import cdi_names
from chronolet_schemas.devices import DeviceNode
from chronolet_schemas.devices import Mount as PluginMount

_ALL = "rwm"
"""Docker's default permissions."""


class DeviceAdditions(msgspec.Struct, frozen=True, kw_only=True):
    """The additions to a container's spec that its devices require. `labels` record the devices."""

    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    devices: Sequence[Device] = ()
    cdi_devices: Sequence[str] = ()
    groups: Sequence[int] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


def device_additions(effect: wanted.ContainerEffect, knows_cdi: Callable[[], bool], cdi: Cdi) -> DeviceAdditions:
    """Return the additions for an effect's devices. `knows_cdi` calls the engine, so it is called only when needed.

    Raises Refusal.
    """
    answer = effect.devices
    if not effect.device_ids:
        return DeviceAdditions()
    names = cdi_names(answer)
    by_engine = bool(names) and knows_cdi()
    edits = Edits() if by_engine else _edits(cdi, names)
    return DeviceAdditions(
        env={**edits.envs, **answer.envs},
        mounts=tuple(_mounts(answer.mounts, edits.mounts)),
        devices=tuple(_devices((*answer.devices, *edits.devices))),
        cdi_devices=names if by_engine else (),
        groups=edits.groups,
        labels={
            **{f"{labels.ANNOTATION}{name}": value for name, value in answer.annotations.items()},
            labels.DEVICES: msgspec.json.encode(effect.device_ids, order="deterministic").decode(),
        },
    )


def _edits(cdi: Cdi, names: Sequence[str]) -> Edits:
    try:
        return cdi.edits(names)
    except CdiRefusal as refusal:
        raise Refusal("failed", f"CDI device injection failed: {refusal}") from refusal


def merged_mounts(own: Sequence[Mount], more: Sequence[Mount]) -> Sequence[Mount]:
    """Return the container's own mounts, and those of plugins at other paths."""
    taken = {_normalized(mount.target) for mount in own}
    return (*own, *(mount for mount in more if _normalized(mount.target) not in taken))


def _mounts(of_plugins: Iterable[PluginMount], of_cdi: Iterable[PluginMount]) -> Iterable[Mount]:
    """Return all mounts; if several have the same path, only the first of them.

    The source of a plugin's mount may be missing: plugins create folders in their own container and rely on the
    runtime, which creates an empty folder, as Docker, containerd and CRI-O do for a kubelet. The source of a CDI mount
    must exist.
    """
    by_path: dict[str, Mount] = {}
    for one, must_exist in (*((one, False) for one in of_plugins), *((one, True) for one in of_cdi)):
        mount = Mount(
            source=one.host_path,
            target=one.container_path,
            read_only=one.read_only,
            # Docker treats a source that is not a path as the name of a volume.
            has_to_be=must_exist or not one.host_path.startswith("/"),
        )
        by_path.setdefault(_normalized(one.container_path), mount)
    return by_path.values()


def _devices(found: Iterable[DeviceNode]) -> Iterable[Device]:
    by_path: dict[str, Device] = {}
    for one in found:
        device = Device(source=one.host_path, target=one.container_path, permissions=one.permissions or _ALL)
        by_path.setdefault(one.container_path, device)
    return by_path.values()


def _normalized(path: str) -> str:
    return path.rstrip("/")
