"""The uids of pods. Pure hashes: the same wish gives the same uid, after any restart, on any process.

Comes in: where a pod was written. Goes out: 32 hexadecimal digits. Source: pkg/kubelet/config/common.go
(applyDefaults), which hashes node, source and the pod itself.
"""

from __future__ import annotations

import hashlib


def file_uid(*, node: str, path: str, pod: str, digest: str) -> str:
    """The uid of a pod of a manifest file; another content (`digest`) is another pod."""
    return _hash("file", node, path, pod, digest)


def applied_uid(*, request: str, pod: str) -> str:
    """The uid of a pod that was first applied by this request."""
    return _hash("apply", request, pod)


def _hash(*parts: str) -> str:
    # Lengths keep two lists of parts that read the same when joined apart.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
