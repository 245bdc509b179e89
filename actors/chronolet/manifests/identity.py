"""Computes the uids of pods by hashing, so the same input gives the same uid after any restart and in any process.

Input: for a pod from a file, the node, path, pod key and content digest; for an applied pod, the pod key and the id of
the request that first applied it. Output: 32 hexadecimal digits. Source: pkg/kubelet/config/common.go (applyDefaults),
which hashes node, source and the pod itself.
"""

from __future__ import annotations

import hashlib


def file_uid(*, node: str, path: str, pod: str, digest: str) -> str:
    """Return the uid of a pod from a manifest file. A pod with changed content (`digest`) is a different pod."""
    return _hash("file", node, path, pod, digest)


def applied_uid(*, request: str, pod: str) -> str:
    """Return the uid of a pod that this request was the first to apply."""
    return _hash("apply", request, pod)


def _hash(*parts: str) -> str:
    # With their lengths, different lists of parts never join to the same text.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
