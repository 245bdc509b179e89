"""The kernel's cgroups: `LinuxCgroups` and `ContainerGroups` implement the ports, `KernelOfFiles` is a fake based on
plain files.
"""

from chronolet.adapters.cgroups.containers import ContainerGroups
from chronolet.adapters.cgroups.fake import KernelOfFiles
from chronolet.adapters.cgroups.linux import LinuxCgroups

__all__ = ["ContainerGroups", "KernelOfFiles", "LinuxCgroups"]
