"""The uids of pods: pure hashes, so the same manifest gives the same uid after any restart and in any process.

Input: where a pod is defined. Output: 32 hexadecimal digits. Source: pkg/kubelet/config/common.go (applyDefaults),
which hashes node, source and the pod itself.
"""

from __future__ import annotations

import hashlib


def file_uid(*, node: str, path: str, pod: str, digest: str) -> str:
    """The uid of a pod from a manifest file; changed content (`digest`) is a different pod."""
    return _hash("file", node, path, pod, digest)


def applied_uid(*, request: str, pod: str) -> str:
    """The uid of a pod that this request applied first."""
    return _hash("apply", request, pod)


def _hash(*parts: str) -> str:
    # The lengths keep different lists of parts apart that would join to the same text.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
