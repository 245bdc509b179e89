"""The machine: cgroups, kernel log, usage, time."""
