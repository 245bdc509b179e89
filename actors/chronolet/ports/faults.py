"""Crash points of effects and of the kernel (see `kernel.faults`)."""

from chronolet.kernel.faults import Faults, NoFaults

__all__ = ["Faults", "NoFaults"]
