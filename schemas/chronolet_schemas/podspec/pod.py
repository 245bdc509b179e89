"""The Pod and its spec as a user writes them. Source: Pod, PodSpec in core/v1/types.go (Kubernetes 1.37)."""

from typing import Literal

import msgspec

from chronolet_schemas.podspec.base import Int32, Int64, Object, Part, Quantities
from chronolet_schemas.podspec.container import Container, EphemeralContainer, ResourceRequirements, RestartPolicy
from chronolet_schemas.podspec.meta import ObjectMeta
from chronolet_schemas.podspec.security import PodSecurityContext
from chronolet_schemas.podspec.volumes import Volume


class LocalReference(Part, frozen=True, kw_only=True):
    """A reference by name to an object in the pod's namespace. Scheduling gates, which are only names, use it, too."""

    name: str = ""


class HostAlias(Part, frozen=True, kw_only=True):
    """An additional line in /etc/hosts."""

    ip: str = ""
    hostnames: tuple[str, ...] = ()


class DNSOption(Part, frozen=True, kw_only=True):
    """One option of resolv.conf."""

    name: str = ""
    value: str | None = None


class DNSConfig(Part, frozen=True, kw_only=True):
    """Additions to resolv.conf."""

    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[DNSOption, ...] = ()


class Toleration(Part, frozen=True, kw_only=True):
    """A taint that the pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class ReadinessGate(Part, frozen=True, kw_only=True):
    """A condition of the pod that another component sets and that the pod's readiness requires."""

    condition_type: str = ""


class PodOS(Part, frozen=True, kw_only=True):
    """The operating system that the containers require."""

    name: str = ""


class PodResourceClaim(Part, frozen=True, kw_only=True):
    """A dynamic resource that containers refer to by `name`."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Part, frozen=True, kw_only=True):
    """A group of pods that are scheduled together."""

    pod_group_name: str | None = None


class EvictionResponder(Part, frozen=True, kw_only=True):
    """A party to consult before an eviction; the highest priority comes first."""

    name: str = ""
    priority: Int32 = 0


class PodSpec(Part, frozen=True, kw_only=True):
    """The desired state of a pod."""

    volumes: tuple[Volume, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    restart_policy: RestartPolicy = "Always"
    termination_grace_period_seconds: Int64 = 30
    active_deadline_seconds: Int64 | None = None
    dns_policy: Literal["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"] = "ClusterFirst"
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    share_process_namespace: bool | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: tuple[LocalReference, ...] = ()
    hostname: str = ""
    subdomain: str = ""
    affinity: Object | None = None
    scheduler_name: str = "default-scheduler"
    tolerations: tuple[Toleration, ...] = ()
    host_aliases: tuple[HostAlias, ...] = ()
    priority_class_name: str = ""
    priority: Int32 | None = None
    dns_config: DNSConfig | None = None
    readiness_gates: tuple[ReadinessGate, ...] = ()
    runtime_class_name: str = ""
    enable_service_links: bool = True
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = None
    overhead: Quantities = msgspec.field(default_factory=dict)
    topology_spread_constraints: tuple[Object, ...] = ()
    set_hostname_as_fqdn: bool | None = msgspec.field(default=None, name="setHostnameAsFQDN")
    os: PodOS | None = None
    host_users: bool | None = None
    scheduling_gates: tuple[LocalReference, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None
    scheduling_group: SchedulingGroup | None = None
    eviction_responders: tuple[EvictionResponder, ...] = ()


class Pod(Part, frozen=True, kw_only=True):
    """A v1 Pod without its status."""

    api_version: str = "v1"
    kind: str = "Pod"
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()

    @property
    def key(self) -> str:
        """`namespace/name`, the key of the pod's entity."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
