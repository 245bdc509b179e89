"""Crash points, as effects and the kernel announce them (see `kernel.faults`)."""

from chronolet.kernel.faults import Faults, NoFaults

__all__ = ["Faults", "NoFaults"]
