"""The kernel's tests share the rig."""

from tests.kernel.rig import rig

__all__ = ["rig"]
