"""Identity of the machine, its operating system and the container runtime.

Input: the machine's own files, the runtime's identity. Output: `System`. Next: the worker of LookAtNode. Source:
pkg/kubelet/nodestatus/setters.go (MachineInfo, VersionInfo), cadvisor's machine info.
"""

from __future__ import annotations

from collections.abc import Mapping

from chronolet.ports.machine.host import Host
from chronolet.ports.runtime.runtime import Engine
from chronolet_schemas.qos import System

_ARCHITECTURES: Mapping[str, str] = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}
"""Maps the kernel's architecture names to Go's."""


def architecture(machine: str) -> str:
    """Return the name that labels and images use: amd64 for x86_64."""
    return _ARCHITECTURES.get(machine, machine)


def system(
    host: Host, engine: Engine, *, name: str, machine: str, version: str, machine_id_file: str = "/etc/machine-id"
) -> System:
    """Collect the identity of machine, system and runtime. `name` is the node's, `machine` the kernel's architecture
    name, `version` the agent's.
    """
    return System(
        machine_id=host.file(machine_id_file).strip(),
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
    """Return the name of the distribution; empty if the file has none."""
    lines = (line.partition("=") for line in os_release.splitlines())
    return next((value.strip().strip("\"'") for key, _, value in lines if key == "PRETTY_NAME"), "")
