"""Encodes a container's owner in its labels and decodes it again. Pure.

Input: an `Owner`, or labels. Output: its labels, or the `Owner` that the labels name. The `io.kubernetes.*` names are
the kubelet's, which cAdvisor and dashboards read (pkg/kubelet/types/labels.go).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"
POD_UID = "io.kubernetes.pod.uid"
CONTAINER_NAME = "io.kubernetes.container.name"
NODE = "chronolet/node"
ATTEMPT = "chronolet/attempt"
CAUSE = "chronolet/cause"
RUN = "chronolet/run"
SPEC_HASH = "chronolet/spec-hash"
DIGEST = "chronolet/digest"
"""Hash of everything that a container was created from, except the request that caused it."""
DEVICES = "chronolet/devices"
"""The container's devices from device plugins, as JSON: ids by resource."""
ANNOTATION = "annotation."
"""Prefix of labels that pass annotations to the runtime, as in the kubelet's dockershim."""

_IDENTITY = (NODE, POD_NAMESPACE, POD_NAME, POD_UID, CONTAINER_NAME, ATTEMPT)


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The owner of a container: `pod` is namespace/name, `container` is POD for the sandbox.

    `cause` is a position in the log whose run id is `run`.
    """

    pod: str
    uid: str
    container: str
    attempt: int
    cause: str = ""
    run: str = ""
    spec_hash: str = ""


def of_node(node: str) -> dict[str, str]:
    """Return a label selector for all containers of this node."""
    return {NODE: node}


def of_uid(node: str, uid: str) -> dict[str, str]:
    """Return a label selector for all containers of the pod with this uid."""
    return {NODE: node, POD_UID: uid}


def written(node: str, owner: Owner) -> dict[str, str]:
    """Return the labels that name a container's node and owner."""
    namespace, _, name = owner.pod.partition("/")
    return {
        POD_NAME: name,
        POD_NAMESPACE: namespace,
        POD_UID: owner.uid,
        CONTAINER_NAME: owner.container,
        NODE: node,
        ATTEMPT: str(owner.attempt),
        CAUSE: owner.cause,
        RUN: owner.run,
        SPEC_HASH: owner.spec_hash,
    }


def read(labels: Mapping[str, str]) -> Owner | None:
    """Return the owner that these labels name; None if one of them is missing or the attempt is not a number, which
    happens if another program has labelled its container with this node.
    """
    attempt = labels.get(ATTEMPT, "")
    if not (attempt.isdecimal() and all(labels.get(name) for name in _IDENTITY)):
        return None
    return Owner(
        pod=f"{labels[POD_NAMESPACE]}/{labels[POD_NAME]}",
        uid=labels[POD_UID],
        container=labels[CONTAINER_NAME],
        attempt=int(attempt),
        cause=labels.get(CAUSE, ""),
        run=labels.get(RUN, ""),
        spec_hash=labels.get(SPEC_HASH, ""),
    )


def devices(labels: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the container's devices, as ids by resource; empty if the label is missing or malformed."""
    try:
        return msgspec.json.decode(labels.get(DEVICES, "{}"), type=dict[str, tuple[str, ...]])
    except msgspec.DecodeError:
        return {}


def differing(wanted: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    """Describe the first identity label in which `found` differs from `wanted`; None if none does."""
    for name in _IDENTITY:
        if wanted.get(name) != found.get(name):
            return f"its label {name} is {found.get(name)!r}, expected {wanted.get(name)!r}"
    return None
