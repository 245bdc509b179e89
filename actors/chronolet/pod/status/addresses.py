"""The addresses in a pod's status. Pure.

Input: the known addresses, those of its newest status, whether a sandbox is ready. Output: addresses. Next: `status`.
Source: pkg/kubelet/pleg/generic.go (getPodIPs).
"""

from __future__ import annotations

from collections.abc import Sequence


def pod_ips(known: Sequence[str], new: Sequence[str], *, sandbox_ready: bool) -> Sequence[str]:
    """The new addresses. A pod without a ready sandbox keeps its previous ones, so that readers see where it was."""
    return new if new or sandbox_ready else known
