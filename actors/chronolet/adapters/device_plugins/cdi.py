"""Read the host's CDI specifications and the container edits of a device.

Input: device names, JSON or YAML files. Output: `Edits`; `CdiRefusal`. Next: the pod's workers. Source: the
specification of tags.cncf.io/container-device-interface (SPEC.md), versions 0.3 to 1.0.

Files are read again for each call, because their generators rewrite them when drivers change. Edits that Docker cannot
apply (hooks, network devices, Intel RDT) are refused and named in the error: without them the container would not get
the device as specified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from chronolet.ports.devices.cdi import CdiRefusal, Edits
from chronolet_schemas.devices import DeviceNode, Mount

SUFFIXES = (".json", ".yaml", ".yml")
_MOST_BYTES = 4 * 1024 * 1024


class _Part(msgspec.Struct, kw_only=True, rename="camel"):
    """Base class of the parts of a CDI specification; fields have the names that the specification uses. Unknown fields
    are ignored, such as a device node's owner: the node keeps the owner that it has on the host.
    """


class _Node(_Part):
    path: str
    host_path: str = ""
    permissions: str = ""


class _Mount(_Part):
    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""


class _Edits(_Part, forbid_unknown_fields=True):
    """Container edits. Unknown kinds are rejected, because without them the device would be incomplete."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[_Node, ...] = ()
    mounts: tuple[_Mount, ...] = ()
    hooks: tuple[Any, ...] = ()
    additional_gids: tuple[int, ...] = msgspec.field(default=(), name="additionalGids")
    net_devices: tuple[Any, ...] = ()
    intel_rdt: Any = None

    def unsupported(self) -> str:
        """Return the names of the edits that Docker cannot apply, as text; empty if it can apply all of them."""
        found = [name for name, has in (("hooks", self.hooks), ("netDevices", self.net_devices)) if has]
        found += ["intelRdt"] if self.intel_rdt else []
        found += [f"a mount of type {one.type}" for one in self.mounts if one.type not in ("", "bind", "none")]
        return ", ".join(found)


class _Device(_Part):
    name: str
    container_edits: _Edits = msgspec.field(default_factory=_Edits)


class _Spec(_Part):
    kind: str
    cdi_version: str = ""
    devices: tuple[_Device, ...] = ()
    container_edits: _Edits = msgspec.field(default_factory=_Edits)


class _DefinedDevice(NamedTuple):
    """A device and the file that defines it."""

    path: Path
    spec: _Spec
    device: _Device


class HostCdi:
    """Implements `ports.devices.cdi.Cdi`. If two folders define a device, the later folder wins."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    def edits(self, names: Sequence[str]) -> Edits:
        if not names:
            return Edits()
        known, problems = self._known()
        missing = [name for name in names if name not in known]
        if missing:
            looked = ", ".join(map(str, self._folders)) or "no folder"
            details = "".join(f"; {problem}" for problem in problems)
            raise CdiRefusal(f"unresolvable CDI devices {', '.join(missing)}; looked in {looked}{details}")
        parts: list[_Edits] = []
        for found in (known[name] for name in dict.fromkeys(names)):
            # The edits common to all devices of a file are applied once, before its first device.
            common = found.spec.container_edits
            parts += [common] if common not in parts else []
            parts.append(found.device.container_edits)
            for part in (common, found.device.container_edits):
                if unsupported := part.unsupported():
                    raise CdiRefusal(
                        f"{found.path}: {found.spec.kind}={found.device.name} has {unsupported}, which Docker can "
                        "apply only if it supports CDI itself: Engine 25 with the feature cdi, or 28"
                    )
        return _together(parts)

    def _known(self) -> tuple[Mapping[str, _DefinedDevice], Sequence[str]]:
        """Return the devices by name, and the problems found: unreadable files, and names that are defined twice in one
        folder.
        """
        known: dict[str, _DefinedDevice] = {}
        problems: list[str] = []
        for folder in self._folders:
            here: dict[str, _DefinedDevice] = {}
            twice: set[str] = set()
            for path in _files(folder):
                spec = _read(path)
                if isinstance(spec, str):
                    problems.append(spec)
                    continue
                for device in spec.devices:
                    name = f"{spec.kind}={device.name}"
                    if name in here:
                        problems.append(f"{name} is in {here[name].path} and in {path}")
                        twice.add(name)
                    here[name] = _DefinedDevice(path, spec, device)
            known |= here
            known = {name: found for name, found in known.items() if name not in twice}
        return known, problems


def _files(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    except OSError:
        return


def _read(path: Path) -> _Spec | str:
    """Parse the file; return the spec, or a description of what is wrong with it."""
    import yaml  # noqa: PLC0415 - slow to load, and rarely needed

    try:
        if path.stat().st_size > _MOST_BYTES:
            return f"{path}: larger than {_MOST_BYTES} bytes"
        text = path.read_bytes()
        if path.suffix == ".json":
            return msgspec.json.decode(text, type=_Spec)
        return msgspec.convert(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)), _Spec)  # noqa: S506 - both are safe loaders
    except (OSError, yaml.YAMLError, msgspec.MsgspecError, RecursionError) as error:
        return f"{path}: {' '.join(str(error).split())}"


def _together(parts: Sequence[_Edits]) -> Edits:
    return Edits(
        envs={name: value for part in parts for name, _, value in (text.partition("=") for text in part.env)},
        mounts=tuple(
            Mount(container_path=one.container_path, host_path=one.host_path, read_only="ro" in one.options)
            for part in parts
            for one in part.mounts
        ),
        devices=tuple(
            DeviceNode(container_path=one.path, host_path=one.host_path or one.path, permissions=one.permissions)
            for part in parts
            for one in part.device_nodes
        ),
        groups=tuple(dict.fromkeys(gid for part in parts for gid in part.additional_gids)),
    )
