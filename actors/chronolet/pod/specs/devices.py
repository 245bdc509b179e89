"""What device plugins give a container, as the runtime is asked for it.

Comes in: what they answered, the engine, the host's CDI specifications. Goes out: `Given`; `Refusal`.
Next: `containers`, `specs`. Answers to pkg/kubelet/cm/devicemanager/manager.go (deviceRunContainerOptions) and
kubelet_pods.go (GenerateRunContainerOptions).

The pod's own word comes first: of a variable, and of a path in the container that its own volume takes.
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
"""What Docker takes where no permissions are said."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What a container is made with beside what its manifest says. `labels` tell who has which devices."""

    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    devices: Sequence[Device] = ()
    cdi_devices: Sequence[str] = ()
    groups: Sequence[int] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


def given(effect: wanted.ContainerEffect, knows_cdi: Callable[[], bool], cdi: Cdi) -> Given:
    """`knows_cdi` asks the engine, which is not needed for most containers. Refusal."""
    answer = effect.devices
    if not effect.device_ids:
        return Given()
    names = cdi_names(answer)
    hands_on = bool(names) and knows_cdi()
    edits = Edits() if hands_on else _edits(cdi, names)
    return Given(
        env={**edits.envs, **answer.envs},
        mounts=tuple(_mounts(answer.mounts, edits.mounts)),
        devices=tuple(_devices((*answer.devices, *edits.devices))),
        cdi_devices=names if hands_on else (),
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


def beside(own: Sequence[Mount], more: Sequence[Mount]) -> Sequence[Mount]:
    """The container's own mounts, and those of plugins whose place it does not take itself."""
    taken = {_place(mount.target) for mount in own}
    return (*own, *(mount for mount in more if _place(mount.target) not in taken))


def _mounts(of_plugins: Iterable[PluginMount], of_cdi: Iterable[PluginMount]) -> Iterable[Mount]:
    """Of several for one place, the first.

    What a plugin mounts may be missing: plugins make folders in a container of their own and rely on the runtime,
    which makes an empty folder, as Docker, containerd and CRI-O do for a kubelet. What CDI mounts has to be there.
    """
    places: dict[str, Mount] = {}
    for one, has_to_be in (*((one, False) for one in of_plugins), *((one, True) for one in of_cdi)):
        mount = Mount(
            source=one.host_path,
            target=one.container_path,
            read_only=one.read_only,
            # A source that is no path would be the name of a volume of Docker's.
            has_to_be=has_to_be or not one.host_path.startswith("/"),
        )
        places.setdefault(_place(one.container_path), mount)
    return places.values()


def _devices(found: Iterable[DeviceNode]) -> Iterable[Device]:
    places: dict[str, Device] = {}
    for one in found:
        device = Device(source=one.host_path, target=one.container_path, permissions=one.permissions or _ALL)
        places.setdefault(one.container_path, device)
    return places.values()


def _place(path: str) -> str:
    return path.rstrip("/")
