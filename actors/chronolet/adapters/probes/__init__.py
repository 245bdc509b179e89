"""Probes of all four types, on a thread that they share. See `ports.pods.probes`."""

from chronolet.adapters.probes.probing import Probing

__all__ = ["Probing"]
