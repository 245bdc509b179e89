"""What is mounted into a container: the pod's volumes, its names on the network, a file for its last words.

Comes in: a container's definition and where its pod runs. Goes out: mounts; `VolumeRefusal`. Next: `containers`.
Answers to pkg/kubelet/kubelet_pods.go (makeMounts).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from chronolet.pod import wanted
from chronolet.pod.outside import Outside
from chronolet.ports.runtime import Mount
from chronolet.rules import hostnames
from chronolet.rules.downward import Place
from chronolet_schemas.podspec import Container

HOSTS = "/etc/hosts"
RESOLV_CONF = "/etc/resolv.conf"

_RESOLVED = "/run/systemd/resolve/resolv.conf"
"""Where systemd-resolved keeps the addresses that its own loopback address stands for."""
_PROPAGATION: Final[Mapping[str | None, Literal["", "rslave", "rshared"]]] = {
    "HostToContainer": "rslave",
    "Bidirectional": "rshared",
}


def mounts(outside: Outside, effect: wanted.StartContainer, definition: Container, place: Place) -> Sequence[Mount]:
    """All mounts of a container; its volumes are made first, where they are not there yet."""
    return (*_volumes(outside, effect, definition), *_names(outside, effect, definition, place))


def _volumes(outside: Outside, effect: wanted.StartContainer, definition: Container) -> Iterator[Mount]:
    paths = outside.volumes.prepare(effect.uid, effect.manifest.spec.volumes)
    for mount in definition.volume_mounts:
        yield Mount(
            source=paths[mount.name],
            target=mount.mount_path,
            read_only=mount.read_only,
            propagation=_PROPAGATION.get(mount.mount_propagation, ""),
        )
    if definition.termination_message_path:
        written = outside.volumes.last_words_file(effect.uid, effect.container, effect.attempt)
        yield Mount(source=written, target=definition.termination_message_path)


def _names(outside: Outside, effect: wanted.StartContainer, definition: Container, place: Place) -> Iterator[Mount]:
    """The pod's own /etc/hosts and, where it differs from the node's, resolv.conf; never over the container's own."""
    own = {mount.mount_path.rstrip("/") for mount in definition.volume_mounts}
    manifest = effect.manifest
    if HOSTS not in own:
        content = hostnames.hosts_file(manifest, place.pod_ip, outside.host.file(HOSTS))
        yield Mount(source=outside.volumes.pod_file(effect.uid, "etc-hosts", content), target=HOSTS)
    if RESOLV_CONF not in own and hostnames.own_resolver(manifest):
        content = hostnames.resolv_conf(manifest, _of_node(outside))
        yield Mount(source=outside.volumes.pod_file(effect.uid, "resolv.conf", content), target=RESOLV_CONF)


def _of_node(outside: Outside) -> str:
    """The node's resolver, as a container can reach it: an address of the loopback is its own there."""
    found = outside.host.file(RESOLV_CONF)
    addresses = hostnames.parsed(found).nameservers
    if addresses and all(address.startswith("127.") for address in addresses):
        return outside.host.file(_RESOLVED) or found
    return found
