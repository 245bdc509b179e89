"""Probes of all four types, on their own thread. See `ports.pods.probes`."""

from chronolet.adapters.probes.probing import Probing

__all__ = ["Probing"]
