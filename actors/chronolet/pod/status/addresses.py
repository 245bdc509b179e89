"""The addresses in a pod's status. Pure.

Input: the known addresses, the new addresses, whether a sandbox is ready. Output: addresses. Next: `status`. Source:
pkg/kubelet/pleg/generic.go (getPodIPs).
"""

from __future__ import annotations

from collections.abc import Sequence


def pod_ips(known: Sequence[str], new: Sequence[str], *, sandbox_ready: bool) -> Sequence[str]:
    """Return the addresses to show. If there are no new ones and no sandbox is ready, the known ones are kept, so that
    readers see where the pod was.
    """
    return new if new or sandbox_ready else known
