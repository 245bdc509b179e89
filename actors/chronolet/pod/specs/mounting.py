"""Computes a container's mounts: volumes, /etc/hosts and resolv.conf, the termination message file.

Input: a container's definition and the node's facts (`Place`). Output: mounts; `VolumeRefusal`. Next: `containers`.
Source: pkg/kubelet/kubelet_pods.go (makeMounts).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from chronolet.pod import wanted
from chronolet.pod.specs.rights import ConfigRefusal
from chronolet.pod.workers.dependencies import PodDependencies
from chronolet.ports.pods.volumes import PodVolumes, SubPath, VolumeFile, VolumeRefusal
from chronolet.ports.runtime.runtime import Mount
from chronolet.rules import downward_files, expansion
from chronolet.rules.downward import Place
from chronolet.rules.names import hostnames
from chronolet.rules.resources import quantities
from chronolet.rules.validation import expanded_sizes
from chronolet_schemas.podspec import (
    Container,
    DownwardAPIVolume,
    DownwardFile,
    EmptyDir,
    Pod,
    VolumeMount,
)

HOSTS = "/etc/hosts"
RESOLV_CONF = "/etc/resolv.conf"

_RESOLVED = "/run/systemd/resolve/resolv.conf"
"""systemd-resolved's resolv.conf with the upstream DNS servers, instead of its stub on a loopback address."""
_PROPAGATION: Final[Mapping[str | None, Literal["", "rslave", "rshared"]]] = {
    "HostToContainer": "rslave",
    "Bidirectional": "rshared",
}


def mounts(
    deps: PodDependencies,
    effect: wanted.ContainerEffect,
    definition: Container,
    place: Place,
    env: Mapping[str, str],
) -> Sequence[Mount]:
    """Return all mounts of a container, after creating its missing volumes.

    Raises VolumeRefusal, UnknownReferenceError, TooLargeError; ConfigRefusal for a subpath that cannot be used.
    """
    return (*_volumes(deps, effect, definition, place, env), *_names(deps, effect, definition, place))


def _volumes(
    deps: PodDependencies, effect: wanted.ContainerEffect, definition: Container, place: Place, env: Mapping[str, str]
) -> Iterator[Mount]:
    volumes = pod_volumes(effect.uid, effect.manifest, place)
    paths = deps.volumes.prepare(volumes)
    for index, mount in enumerate(definition.volume_mounts):
        yield Mount(
            source=_source(deps, effect, mount, env, index=index, path=paths[mount.name]),
            target=mount.mount_path,
            # Downward API files are read-only for containers, as with the kubelet.
            read_only=mount.read_only or mount.name in volumes.files,
            propagation=_PROPAGATION.get(mount.mount_propagation, ""),
        )
    if definition.termination_message_path:
        written = deps.volumes.last_words_file(effect.uid, effect.container, effect.attempt)
        yield Mount(source=written, target=definition.termination_message_path)


def _source(
    deps: PodDependencies,
    effect: wanted.ContainerEffect,
    mount: VolumeMount,
    env: Mapping[str, str],
    *,
    index: int,
    path: str,
) -> str:
    """Return the path of the volume, or of the subpath that the mount selects."""
    sizes = {name: expanded_sizes.text_bytes(value) for name, value in env.items()} if mount.sub_path_expr else {}
    expanded_sizes.check_path(f"volumeMounts[{index}].subPathExpr", mount.sub_path_expr, sizes)
    try:
        part = expansion.expand_known(mount.sub_path_expr, env) if mount.sub_path_expr else mount.sub_path
    except expansion.MissingVariableError as error:
        raise ConfigRefusal(str(error)) from error
    if not part:
        return path
    if part.startswith("/"):
        raise ConfigRefusal(f"error SubPath `{part}` must not be an absolute path")
    if ".." in part.split("/"):
        raise ConfigRefusal(f"unable to provision SubPath `{part}`: must not contain '..'")
    try:
        return deps.volumes.sub_path(
            SubPath(uid=effect.uid, volume=mount.name, source=path, container=effect.container, index=index, path=part)
        )
    except VolumeRefusal as refusal:
        raise ConfigRefusal(
            f'failed to prepare subPath for volumeMount "{mount.name}" of container "{effect.container}": {refusal}'
        ) from refusal


def pod_volumes(uid: str, manifest: Pod, place: Place) -> PodVolumes:
    """Return all volumes of a pod, with the contents and limits from the pod's own fields.

    Raises UnknownReferenceError, TooLargeError.
    """
    downward_files.check_files(manifest, place)
    context = manifest.spec.security_context
    return PodVolumes(
        uid=uid,
        volumes=manifest.spec.volumes,
        fs_group=context.fs_group if context else None,
        memory_bytes={one.name: _limit(manifest, one.empty_dir) for one in manifest.spec.volumes if one.empty_dir},
        files={
            one.name: [_file(manifest, one.downward_api, item, place) for item in one.downward_api.items]
            for one in manifest.spec.volumes
            if one.downward_api
        },
    )


def _limit(manifest: Pod, volume: EmptyDir) -> int:
    """Return the smaller of two limits in bytes: the volume's own, and the sum of the app containers' memory limits if
    each of them has one; 0 if neither limit exists.
    """
    limits = [one.resources.limits.get("memory") for one in manifest.spec.containers]
    total = sum(quantities.memory_bytes(one) for one in limits if one) if all(limits) else 0
    own = quantities.memory_bytes(volume.size_limit) if volume.size_limit else 0
    return min(total, own) if total and own else total or own


def _file(manifest: Pod, volume: DownwardAPIVolume, item: DownwardFile, place: Place) -> VolumeFile:
    return VolumeFile(
        path=item.path,
        content=downward_files.content(item, manifest, place),
        mode=item.mode if item.mode is not None else volume.default_mode,
    )


def _names(
    deps: PodDependencies, effect: wanted.ContainerEffect, definition: Container, place: Place
) -> Iterator[Mount]:
    """Yield the mounts of the pod's /etc/hosts and, if it differs from the node's, its resolv.conf. A container's own
    mount at one of these paths takes precedence.
    """
    own = {mount.mount_path.rstrip("/") for mount in definition.volume_mounts}
    manifest = effect.manifest
    if HOSTS not in own:
        # Do not write the file before the start: the pod has no address yet, and a running container may already read
        # it.
        early = isinstance(effect, wanted.CreateContainer)
        content = None if early else hostnames.hosts_file(manifest, place.pod_ip, deps.host.file(HOSTS))
        yield Mount(source=deps.volumes.pod_file(effect.uid, "etc-hosts", content), target=HOSTS)
    if RESOLV_CONF not in own and hostnames.own_resolver(manifest):
        content = hostnames.resolv_conf(manifest, _of_node(deps))
        yield Mount(source=deps.volumes.pod_file(effect.uid, "resolv.conf", content), target=RESOLV_CONF)


def _of_node(deps: PodDependencies) -> str:
    """Return the node's resolv.conf. If all its servers have loopback addresses, which containers cannot reach, return
    the file of systemd-resolved instead, if there is one.
    """
    found = deps.host.file(RESOLV_CONF)
    addresses = hostnames.parsed(found).nameservers
    if addresses and all(address.startswith("127.") for address in addresses):
        return deps.host.file(_RESOLVED) or found
    return found
