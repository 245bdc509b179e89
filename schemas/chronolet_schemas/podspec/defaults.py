"""Applies the defaults that Kubernetes applies to a Pod. Pure.

Input: a Pod as written. Output: the Pod as the API server would store it. Source: pkg/apis/core/v1/defaults.go and
pkg/util/parsers.
"""

from typing import TypeVar

import msgspec

from chronolet_schemas.podspec.actions import Probe
from chronolet_schemas.podspec.container import Container, ContainerPort, PullPolicy, ResourceRequirements
from chronolet_schemas.podspec.plain import from_plain, to_plain
from chronolet_schemas.podspec.pod import Pod, PodSpec
from chronolet_schemas.podspec.volumes import EmptyDir, Volume

DEFAULT_NAMESPACE = "default"

_AnyContainer = TypeVar("_AnyContainer", bound=Container)


def defaulted(pod: Pod, namespace: str = DEFAULT_NAMESPACE) -> Pod:
    """Return the pod with all defaults, in normal form. `namespace` is used if the pod names none."""
    metadata = msgspec.structs.replace(pod.metadata, namespace=pod.metadata.namespace or namespace)
    filled = msgspec.structs.replace(pod, metadata=metadata, spec=_spec(pod.spec))
    # Convert to the plain form and back: an explicit value that equals a default becomes the default itself, which the
    # encoder omits. So equivalent pods have the same bytes.
    return from_plain(to_plain(filled))


def pull_policy(image: str) -> PullPolicy:
    """Return the default pull policy: `Always` if the tag is latest, or if there is neither a tag nor a digest;
    otherwise `IfNotPresent`.
    """
    reference, _, image_digest = image.partition("@")
    _, _, tag = reference.rpartition("/")[2].partition(":")
    if not tag and not image_digest:
        return "Always"
    return "Always" if tag == "latest" else "IfNotPresent"


def _spec(spec: PodSpec) -> PodSpec:
    return msgspec.structs.replace(
        spec,
        volumes=tuple(_volume(volume) for volume in spec.volumes),
        containers=tuple(_container(one, host_network=spec.host_network) for one in spec.containers),
        init_containers=tuple(_container(one, host_network=spec.host_network) for one in spec.init_containers),
        ephemeral_containers=tuple(_container(one, host_network=False) for one in spec.ephemeral_containers),
    )


def _volume(volume: Volume) -> Volume:
    """Return the volume; one without a source becomes an emptyDir."""
    if volume == Volume(name=volume.name):
        return msgspec.structs.replace(volume, empty_dir=EmptyDir())
    return volume


def _container(container: _AnyContainer, *, host_network: bool) -> _AnyContainer:
    return msgspec.structs.replace(
        container,
        image_pull_policy=container.image_pull_policy or pull_policy(container.image),
        resources=_resources(container.resources),
        ports=tuple(_port(port, host_network=host_network) for port in container.ports),
        liveness_probe=_probe(container.liveness_probe),
        readiness_probe=_probe(container.readiness_probe),
        startup_probe=_probe(container.startup_probe),
    )


def _resources(resources: ResourceRequirements) -> ResourceRequirements:
    """Set each missing request to the limit of the same resource."""
    return msgspec.structs.replace(resources, requests={**resources.limits, **resources.requests})


def _port(port: ContainerPort, *, host_network: bool) -> ContainerPort:
    """On the host network, set a missing host port to the container port."""
    if host_network and not port.host_port:
        return msgspec.structs.replace(port, host_port=port.container_port)
    return port


def _probe(probe: Probe | None) -> Probe | None:
    """Return the probe with the default in place of a time-out, period or threshold of zero; None if there is none."""
    if probe is None:
        return None
    return msgspec.structs.replace(
        probe,
        timeout_seconds=probe.timeout_seconds or 1,
        period_seconds=probe.period_seconds or 10,
        success_threshold=probe.success_threshold or 1,
        failure_threshold=probe.failure_threshold or 3,
    )
