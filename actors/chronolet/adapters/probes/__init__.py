"""Probes of all four sorts, on one thread of their own. See `ports.probes`."""

from chronolet.adapters.probes.probing import Probing

__all__ = ["Probing"]
