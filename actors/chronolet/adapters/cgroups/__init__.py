"""The kernel's cgroups: `LinuxCgroups` is the port's implementation, `KernelOfFiles` a tree of files in its place."""

from chronolet.adapters.cgroups.containers import ContainerGroups
from chronolet.adapters.cgroups.fake import KernelOfFiles
from chronolet.adapters.cgroups.linux import LinuxCgroups

__all__ = ["ContainerGroups", "KernelOfFiles", "LinuxCgroups"]
