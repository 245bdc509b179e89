"""Build Docker's request bodies for creating containers and execs, and the login header of a pull. Pure.

Input: `SandboxSpec`, `ContainerSpec`, an exec's command, `Credential`. Output: JSON, a header. Next: `runtime`.
Corresponds to the helpers in pkg/kubelet/dockershim (security and log options keep Docker's defaults unless a pod's
shared namespaces need other values).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from chronolet.ports.runtime.runtime import ContainerSpec, Mount, PortMapping, SandboxSpec
from chronolet.rules.names.image_names import ImageName
from chronolet.rules.names.registry_keys import Credential, server_of
from chronolet.rules.resources.cgroups import LEAST_SHARES, quota

# Logs are always rotated: a container that logs a lot must not fill the disk.
_LOG: Mapping[str, Any] = {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "5"}}

# Docker's default detach keys would swallow a terminal's Ctrl-P, which shells use for their history.
_UNTYPABLE_KEYS = "ctrl-^,ctrl-_,ctrl-^,ctrl-_,ctrl-^"

_encode = msgspec.json.Encoder().encode


def registry_auth(credential: Credential | None, image: ImageName) -> Mapping[str, str]:
    """Return the header with which the engine logs in to the image's registry for a pull; empty if `credential` is
    None.
    """
    if credential is None:
        return {}
    fields = {
        "username": credential.username,
        "password": credential.password,
        "identitytoken": credential.identity_token,
        "registrytoken": credential.registry_token,
        "serveraddress": server_of(image),
    }
    encoded = _encode({name: value for name, value in fields.items() if value})
    return {"X-Registry-Auth": base64.urlsafe_b64encode(encoded).decode()}


def sandbox(spec: SandboxSpec) -> bytes:
    """Build the body of the sandbox's create call."""
    host: dict[str, Any] = {
        # The daemon's default may be `private`, which other containers cannot join.
        "IpcMode": "host" if spec.host_ipc else "shareable",
        "CpuShares": LEAST_SHARES,
        "LogConfig": _LOG,
        "Sysctls": spec.sysctls,
        **_place(spec),
    }
    body: dict[str, Any] = {"Image": spec.image, "Labels": spec.labels, "Tty": False, "HostConfig": host}
    if spec.host_pid:
        host["PidMode"] = "host"
    if spec.host_network:
        host["NetworkMode"] = "host"
    else:
        body["Hostname"] = spec.hostname
        body["ExposedPorts"] = {_port(mapping): {} for mapping in spec.ports}
        host["PortBindings"] = _bindings(spec.ports)
    return _encode(body)


def container(spec: ContainerSpec) -> bytes:
    """Build the body of a container's create call."""
    body: dict[str, Any] = {
        "Image": spec.image,
        "Labels": spec.labels,
        "Tty": spec.tty,
        "OpenStdin": spec.stdin,
        "StdinOnce": spec.stdin_once,
        "User": spec.user,
        "Env": [f"{name}={value}" for name, value in spec.env.items()],
        "HostConfig": {
            "NetworkMode": f"container:{spec.sandbox_id}",
            "IpcMode": "host" if spec.host_ipc else f"container:{spec.sandbox_id}",
            "CpuShares": spec.cpu_shares,
            "Memory": spec.memory_bytes,
            # The container gets no swap in addition to its memory, as with the kubelet.
            "MemorySwap": spec.memory_bytes,
            "Binds": [_bind(mount) for mount in spec.mounts if _fits_a_line(mount)],
            "Mounts": [_mount(mount) for mount in spec.mounts if not _fits_a_line(mount)],
            **_devices(spec),
            "LogConfig": _LOG,
            **_cpu_limit(spec.cpu_milli, spec.cpu_period_us),
            **_place(spec),
            **_rights(spec),
        },
    }
    # If an entrypoint is given, Docker also drops the image's arguments. It takes missing fields from the image.
    if spec.command:
        body["Entrypoint"] = spec.command
    if spec.args:
        body["Cmd"] = spec.args
    if spec.working_dir:
        body["WorkingDir"] = spec.working_dir
    if spec.stop_signal:
        body["StopSignal"] = spec.stop_signal
    return _encode(body)


def execution(command: Sequence[str], env: Mapping[str, str], *, tty: bool, stdin: bool) -> bytes:
    """Build the body of an exec's create call."""
    return _encode(
        {
            "Cmd": command,
            "Env": [f"{name}={value}" for name, value in env.items()],
            "Tty": tty,
            "AttachStdin": stdin,
            "AttachStdout": True,
            "AttachStderr": True,
            "DetachKeys": _UNTYPABLE_KEYS,
        }
    )


def _rights(spec: ContainerSpec) -> Mapping[str, Any]:
    """Return the body's fields for the container's privileges, groups and PID namespace."""
    found: dict[str, Any] = {
        "Privileged": spec.privileged,
        "ReadonlyRootfs": spec.read_only_root,
        "CapAdd": spec.cap_add,
        "CapDrop": spec.cap_drop,
        "GroupAdd": [str(group) for group in spec.groups],
    }
    if spec.security_options:
        found["SecurityOpt"] = spec.security_options
    if spec.pid:
        found["PidMode"] = "host" if spec.pid == "host" else f"container:{spec.pid}"
    return found


def _place(spec: SandboxSpec | ContainerSpec) -> Mapping[str, Any]:
    """Return the body's fields for the container's cgroup parent and OOM score adjustment."""
    found: dict[str, Any] = {"CgroupParent": spec.cgroup_parent} if spec.cgroup_parent else {}
    return found | ({"OomScoreAdj": spec.oom_score_adj} if spec.oom_score_adj else {})


def _cpu_limit(milli: int, period_us: int) -> Mapping[str, int]:
    if milli <= 0:
        return {}
    return {"CpuPeriod": period_us, "CpuQuota": quota(milli, period_us)}


def _port(mapping: PortMapping) -> str:
    return f"{mapping.container_port}/{mapping.protocol}"


def _bindings(ports: Sequence[PortMapping]) -> Mapping[str, list[Mapping[str, str]]]:
    bindings: dict[str, list[Mapping[str, str]]] = {}
    for mapping in ports:
        binding = {"HostIp": mapping.host_ip, "HostPort": str(mapping.host_port)}
        bindings.setdefault(_port(mapping), []).append(binding)
    return bindings


def _devices(spec: ContainerSpec) -> Mapping[str, Any]:
    """Return the body's fields for the host devices that the container gets in addition to the default ones."""
    found: dict[str, Any] = {}
    if spec.devices:
        found["Devices"] = [
            {"PathOnHost": one.source, "PathInContainer": one.target, "CgroupPermissions": one.permissions}
            for one in spec.devices
        ]
    if spec.cdi_devices:
        found["DeviceRequests"] = [{"Driver": "cdi", "DeviceIDs": spec.cdi_devices}]
    return found


def _fits_a_line(mount: Mount) -> bool:
    """Whether a mount fits Docker's `source:target:mode` form: no path has a colon, and Docker may create a missing
    source.
    """
    return ":" not in mount.source + mount.target and not mount.has_to_be


def _bind(mount: Mount) -> str:
    how = "ro" if mount.read_only else "rw"
    return f"{mount.source}:{mount.target}:{how}{',' if mount.propagation else ''}{mount.propagation}"


def _mount(mount: Mount) -> Mapping[str, Any]:
    options = {"BindOptions": {"Propagation": mount.propagation}} if mount.propagation else {}
    return {
        "Type": "bind",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
        **options,
    }
