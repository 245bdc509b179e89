"""What the machine, its system and the container runtime call themselves.

Comes in: the machine's own files, the runtime's identity. Goes out: `System`. Next: the worker of LookAtNode.
Source: pkg/kubelet/nodestatus/setters.go (MachineInfo, VersionInfo), cadvisor's machine info.
"""

from __future__ import annotations

from collections.abc import Mapping

from chronolet.ports.machine.host import Host
from chronolet.ports.runtime.runtime import Engine
from chronolet_schemas.qos import System

_ARCHITECTURES: Mapping[str, str] = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}
"""Go's words for what the kernel says."""


def architecture(machine: str) -> str:
    """As labels and images have it: amd64 for x86_64."""
    return _ARCHITECTURES.get(machine, machine)


def system(host: Host, engine: Engine, *, name: str, machine: str, version: str) -> System:
    """`name` is the node's, `machine` the kernel's word for the processor, `version` the agent's."""
    return System(
        machine_id=host.file("/etc/machine-id").strip(),
        system_uuid=host.file("/sys/class/dmi/id/product_uuid").strip(),
        boot_id=host.file("/proc/sys/kernel/random/boot_id").strip(),
        kernel_version=host.file("/proc/sys/kernel/osrelease").strip(),
        os_image=_pretty(host.file("/etc/os-release")),
        operating_system="linux",
        architecture=architecture(machine),
        container_runtime_version=f"docker://{engine.version}",
        agent_version=version,
        internal_ip=host.address(),
        hostname=name,
        storage_bytes=host.storage_bytes(),
    )


def _pretty(os_release: str) -> str:
    """The name of the distribution; empty where none is written."""
    lines = (line.partition("=") for line in os_release.splitlines())
    return next((value.strip().strip("\"'") for key, _, value in lines if key == "PRETTY_NAME"), "")
