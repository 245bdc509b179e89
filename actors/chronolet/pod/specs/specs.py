"""Builds the runtime's specs of a pod's sandbox and containers. Pure.

Input: a pod's effects, with the manifest. Output: `SandboxSpec`, `ContainerSpec`. Next: the pod's workers.
Source: pkg/kubelet/kuberuntime/kuberuntime_sandbox.go, kuberuntime_container.go, kuberuntime_container_linux.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from chronolet.pod import wanted
from chronolet.pod.specs.devices import DeviceAdditions, merged_mounts
from chronolet.pod.specs.rights import GrantedRights
from chronolet.pod.state import definitions
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerSpec, Mount, PortMapping, SandboxSpec
from chronolet.rules import downward, expansion
from chronolet.rules.names import hostnames, names
from chronolet.rules.resources import cgroups, container_limits, qos_class, resources
from chronolet.rules.resources.container_limits import Holding
from chronolet.rules.resources.needs import needs
from chronolet.rules.validation import expanded_sizes
from chronolet_schemas.podspec import Container, EnvVarSource, Pod

_PROTOCOLS: Final[Mapping[str, Literal["tcp", "udp", "sctp"]]] = {"TCP": "tcp", "UDP": "udp", "SCTP": "sctp"}


class SpecInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a container's spec that are not in its manifest."""

    node: str
    cause: str
    run: str = ""
    place: downward.Place = downward.Place()
    mounts: Sequence[Mount] = ()
    granted: GrantedRights = GrantedRights()
    additions: DeviceAdditions = DeviceAdditions()
    holding: Holding = Holding()
    target_id: str = ""
    """The id of the container whose processes an ephemeral container sees."""


def sandbox(
    effect: wanted.StartSandbox, *, node: str, image: str, cause: str, run: str = "", least_oom_score_adj: int = 0
) -> SandboxSpec:
    """Return the spec of the container that holds the pod's namespaces and host ports. Raises HostnameError."""
    owner = labels.Owner(
        pod=effect.pod,
        uid=effect.uid,
        container=names.SANDBOX,
        attempt=effect.attempt,
        cause=cause,
        run=run,
        spec_hash=effect.spec_hash,
    )
    spec = effect.manifest.spec
    context = spec.security_context
    return SandboxSpec(
        name=_name(owner),
        labels=labels.written(node, owner),
        image=image,
        hostname=hostnames.kernel_name(effect.manifest),
        ports=() if spec.host_network else tuple(_ports(effect.manifest)),
        host_network=spec.host_network,
        host_pid=spec.host_pid,
        host_ipc=spec.host_ipc,
        cgroup_parent=effect.cgroup_parent,
        oom_score_adj=max(qos_class.SANDBOX_OOM_SCORE_ADJ, least_oom_score_adj),
        sysctls={one.name.replace("/", "."): one.value for one in context.sysctls} if context else {},
    )


def container(effect: wanted.ContainerEffect, definition: Container, inputs: SpecInputs) -> ContainerSpec:
    """Return the spec of one container. Raises UnknownReferenceError, TooLargeError."""
    owner = labels.Owner(
        pod=effect.pod,
        uid=effect.uid,
        container=effect.container,
        attempt=effect.attempt,
        cause=inputs.cause,
        run=inputs.run,
        spec_hash=effect.spec_hash,
    )
    spec = effect.manifest.spec
    additions = inputs.additions
    env = {**additions.env, **environment(effect.manifest, definition, inputs.place, additions.env)}
    rights = inputs.granted.rights
    wanted_spec = ContainerSpec(
        name=_name(owner),
        labels={**additions.labels, **labels.written(inputs.node, owner)},
        sandbox_id=effect.sandbox_id,
        # The id, not the name: this image was checked, and its tag may have moved since.
        image=effect.image_id or definition.image,
        command=expansion.expand_all(definition.command, env),
        args=expansion.expand_all(definition.args, env),
        env=env,
        working_dir=definition.working_dir,
        mounts=merged_mounts(inputs.mounts, additions.mounts),
        devices=additions.devices,
        cdi_devices=additions.cdi_devices,
        cpu_milli=container_limits.cpu_milli(definition, inputs.holding),
        cpu_period_us=inputs.holding.period_us,
        memory_bytes=resources.limits(definition).get("memory", 0),
        cpu_shares=_shares(definition),
        cgroup_parent=effect.cgroup_parent,
        oom_score_adj=max(
            qos_class.oom_score_adj(spec, definition, inputs.place.memory_bytes), inputs.place.least_oom_score_adj
        ),
        pid=_processes(effect, inputs.target_id),
        host_ipc=spec.host_ipc,
        tty=definition.tty,
        stdin=definition.stdin,
        stdin_once=definition.stdin_once,
        user=inputs.granted.user,
        groups=(*rights.groups, *additions.groups),
        privileged=rights.privileged,
        cap_add=rights.add,
        cap_drop=rights.drop,
        read_only_root=rights.read_only_root,
        security_options=inputs.granted.options,
        stop_signal=definition.lifecycle.stop_signal if definition.lifecycle else "",
        held=container_limits.additional(needs(spec), definition.name, inputs.holding),
    )
    return msgspec.structs.replace(wanted_spec, labels={**wanted_spec.labels, labels.DIGEST: _digest(wanted_spec)})


def _digest(spec: ContainerSpec) -> str:
    """Return a hash of everything from which a container is created, except the request's id: 16 hexadecimal digits."""
    labelled = {name: value for name, value in spec.labels.items() if name != labels.CAUSE}
    plain = msgspec.json.encode(msgspec.structs.replace(spec, labels=labelled), order="sorted")
    return hashlib.sha256(plain).hexdigest()[:16]


def environment(
    manifest: Pod, definition: Container, place: downward.Place, more: Mapping[str, str] = MappingProxyType({})
) -> Mapping[str, str]:
    """Return a container's environment variables. `more`: the variables of device plugins, which count towards the size
    limits.

    Raises UnknownReferenceError; and TooLargeError, before building the variables, if they, the command and the
    arguments exceed the limits.
    """

    def resolved(source: EnvVarSource) -> str:
        return downward.value(source, manifest, definition, place)

    expanded_sizes.check(definition, expanded_sizes.environment_sizes(definition.env, resolved, more))
    return expansion.environment(definition.env, resolved)


def _processes(effect: wanted.ContainerEffect, target_id: str) -> str:
    spec = effect.manifest.spec
    if spec.host_pid:
        return "host"
    return effect.sandbox_id if spec.share_process_namespace else target_id


def definition(manifest: Pod, name: str) -> Container | None:
    """Return the container with this name, of any kind; None if there is none."""
    return next((one for _, one in definitions(manifest) if one.name == name), None)


def _name(owner: labels.Owner) -> str:
    namespace, _, name = owner.pod.partition("/")
    return names.container_name(
        container=owner.container, pod=name, namespace=namespace, uid=owner.uid, attempt=owner.attempt
    )


def _ports(manifest: Pod) -> Iterator[PortMapping]:
    for kind, one in definitions(manifest):
        for port in one.ports:
            # Init and ephemeral containers, which come and go while others run, get no host port.
            if port.host_port and kind in ("app", "sidecar"):
                yield PortMapping(
                    host_ip=port.host_ip,
                    host_port=port.host_port,
                    container_port=port.container_port,
                    protocol=_PROTOCOLS[port.protocol],
                )


def _shares(definition: Container) -> int:
    """Return the CPU shares for the container's request, or for its limit if it has no request."""
    requested = resources.requests(definition).get("cpu") or resources.limits(definition).get("cpu", 0)
    return cgroups.shares(requested)
