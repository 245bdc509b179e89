"""Shares the kernel's `rig` fixture, which makes logs."""

from tests.kernel.rig import rig

__all__ = ["rig"]
