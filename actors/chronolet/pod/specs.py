"""What the runtime is asked to make of a pod. Pure.

Comes in: a pod's effects, with the manifest. Goes out: `SandboxSpec`, `ContainerSpec`. Next: `effects`.
Answers to: pkg/kubelet/kuberuntime/kuberuntime_sandbox.go, kuberuntime_container.go, kuberuntime_container_linux.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from chronolet.pod import wanted
from chronolet.pod.state import definitions
from chronolet.ports import labels
from chronolet.ports.runtime import ContainerSpec, Mount, PortMapping, SandboxSpec
from chronolet.rules import expansion, names, quantities
from chronolet_schemas.podspec import Container, Pod

_LONGEST_HOSTNAME = 63
_LEAST_SHARES, _MOST_SHARES = 2, 262_144
_SHARES_OF_A_CPU = 1024
_PROTOCOLS: Final[Mapping[str, Literal["tcp", "udp", "sctp"]]] = {"TCP": "tcp", "UDP": "udp", "SCTP": "sctp"}


def sandbox(effect: wanted.StartSandbox, *, node: str, image: str, cause: str, run: str = "") -> SandboxSpec:
    """The container that holds the pod's namespaces and host ports."""
    owner = labels.Owner(
        pod=effect.pod,
        uid=effect.uid,
        container=names.SANDBOX,
        attempt=effect.attempt,
        cause=cause,
        run=run,
        spec_hash=effect.spec_hash,
    )
    return SandboxSpec(
        name=_name(owner),
        labels=labels.written(node, owner),
        image=image,
        hostname=effect.pod.partition("/")[2][:_LONGEST_HOSTNAME].rstrip("-."),
        ports=tuple(_ports(effect.manifest)),
    )


def container(
    effect: wanted.StartContainer,
    definition: Container,
    mounts: Sequence[Mount],
    *,
    node: str,
    cause: str,
    run: str = "",
) -> ContainerSpec:
    """One container."""
    owner = labels.Owner(
        pod=effect.pod,
        uid=effect.uid,
        container=effect.container,
        attempt=effect.attempt,
        cause=cause,
        run=run,
        spec_hash=effect.spec_hash,
    )
    env = expansion.environment(definition.env)
    limits = definition.resources.limits
    return ContainerSpec(
        name=_name(owner),
        labels=labels.written(node, owner),
        sandbox_id=effect.sandbox_id,
        # The id and not the name: this very image was found good, wherever its tag has moved since.
        image=effect.image_id or definition.image,
        command=expansion.expand_all(definition.command, env),
        args=expansion.expand_all(definition.args, env),
        env=env,
        working_dir=definition.working_dir,
        mounts=mounts,
        cpu_milli=quantities.cpu_milli(limits["cpu"]) if "cpu" in limits else 0,
        memory_bytes=quantities.memory_bytes(limits["memory"]) if "memory" in limits else 0,
        cpu_shares=_shares(definition),
    )


def definition(manifest: Pod, name: str) -> Container | None:
    """The container of that name, of whichever sort."""
    return next((one for _, one in definitions(manifest) if one.name == name), None)


def _name(owner: labels.Owner) -> str:
    namespace, _, name = owner.pod.partition("/")
    return names.container_name(
        container=owner.container, pod=name, namespace=namespace, uid=owner.uid, attempt=owner.attempt
    )


def _ports(manifest: Pod) -> Iterator[PortMapping]:
    for one in manifest.spec.containers:
        for port in one.ports:
            if port.host_port:
                yield PortMapping(
                    host_ip=port.host_ip,
                    host_port=port.host_port,
                    container_port=port.container_port,
                    protocol=_PROTOCOLS[port.protocol],
                )


def _shares(definition: Container) -> int:
    """A request's weight; a limit without a request is its request, as Kubernetes defaults it."""
    resources = definition.resources
    asked = resources.requests.get("cpu") or resources.limits.get("cpu")
    milli = quantities.cpu_milli(asked) if asked else 0
    return max(_LEAST_SHARES, min(milli * _SHARES_OF_A_CPU // 1000, _MOST_SHARES))
