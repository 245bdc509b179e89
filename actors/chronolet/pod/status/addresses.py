"""The addresses that a pod shows. Pure.

Comes in: those known so far, those of its newest status, whether a sandbox is ready. Goes out: addresses. Next:
`status`. Source: pkg/kubelet/pleg/generic.go (getPodIPs).
"""

from __future__ import annotations

from collections.abc import Sequence


def pod_ips(known: Sequence[str], new: Sequence[str], *, sandbox_ready: bool) -> Sequence[str]:
    """The new ones. A pod without a ready sandbox keeps those that it had, for whoever asks where it was."""
    return new if new or sandbox_ready else known
