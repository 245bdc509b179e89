"""Short hashes of definitions, to detect changes. Pure.

Input: a Pod's spec. Output: 16 hexadecimal digits. Next: `pod.SpecAccepted` contains them. Source:
pkg/kubelet/container/helpers.go (HashContainer). Unlike the kubelet's, the hash covers every field whose change
requires a new container.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from chronolet.pod.state import definitions
from chronolet.rules.resources.qos_class import qos_class
from chronolet_schemas.podspec import Container, Pod, plain

_LENGTH = 16

_NOT_IN_THE_CONTAINER = frozenset(
    {"livenessProbe", "readinessProbe", "startupProbe", "imagePullPolicy", "resizePolicy", "lifecycle"}
)
"""Fields that act from outside the container: a change to one of them does not require a new container."""

_SANDBOX = frozenset(
    {
        "hostname",
        "hostnameOverride",
        "subdomain",
        "setHostnameAsFQDN",
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "hostUsers",
        "shareProcessNamespace",
        "dnsPolicy",
        "dnsConfig",
        "hostAliases",
        "securityContext",
        "runtimeClassName",
    }
)
"""Fields of the pod's spec that define the sandbox, in addition to the published ports and the QoS class."""


def container_hash(pod: Pod, container: Container) -> str:
    """Return the hash of one container: its own fields, except those in `_NOT_IN_THE_CONTAINER`, and the volumes that
    it mounts.
    """
    fields = {key: value for key, value in plain(container).items() if key not in _NOT_IN_THE_CONTAINER}
    mounted = {mount.name for mount in container.volume_mounts}
    volumes = [plain(volume) for volume in pod.spec.volumes if volume.name in mounted]
    return _hash({"container": fields, "volumes": volumes})


def container_hashes(pod: Pod) -> dict[str, str]:
    """Return the hash of every container of the pod, by name."""
    return {one.name: container_hash(pod, one) for _, one in definitions(pod)}


def sandbox_hash(pod: Pod) -> str:
    """Return the hash of the sandbox: it changes with the fields in `_SANDBOX`, the published ports of app containers
    and sidecars, and the pod's QoS class.
    """
    spec = {key: value for key, value in plain(pod.spec).items() if key in _SANDBOX}
    publishing = [one for kind, one in definitions(pod) if kind in ("app", "sidecar")]
    ports = [plain(port) for one in publishing for port in one.ports if port.host_port]
    # The QoS class determines the place of the pod's cgroup, so another class needs a new sandbox.
    return _hash({"spec": spec, "ports": ports, "qos": qos_class(pod.spec)})


def _hash(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:_LENGTH]
