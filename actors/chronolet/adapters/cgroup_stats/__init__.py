"""What cgroups use, read from the kernel's files: `finder` finds a container's cgroup, `reader` reads one."""
