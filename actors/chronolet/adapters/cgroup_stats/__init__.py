"""Resource usage of cgroups, read from the kernel's files: `finder` locates a container's cgroup,
`reader` reads one.
"""
