"""Containers of all three types. Source: Container, EphemeralContainer and their parts in core/v1/types.go."""

from typing import Literal

import msgspec

from chronolet_schemas.podspec.actions import Lifecycle, Probe
from chronolet_schemas.podspec.base import Int32, Part, Quantities, Quantity
from chronolet_schemas.podspec.security import SecurityContext

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
Protocol = Literal["TCP", "UDP", "SCTP"]
RestartPolicy = Literal["Always", "OnFailure", "Never"]


class ContainerPort(Part, frozen=True, kw_only=True):
    """A port that a container listens on; published on the node unless `host_port` is 0."""

    name: str = ""
    host_port: Int32 = 0
    container_port: Int32 = 0
    protocol: Protocol = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class ObjectFieldSelector(Part, frozen=True, kw_only=True):
    """A reference to a field of the pod itself, such as `metadata.name`."""

    api_version: str = "v1"
    field_path: str = ""


class ResourceFieldSelector(Part, frozen=True, kw_only=True):
    """A reference to a request or limit of a container, in units of `divisor`."""

    container_name: str = ""
    resource: str = ""
    divisor: Quantity = ""


class KeySelector(Part, frozen=True, kw_only=True):
    """A reference to one key of a ConfigMap or Secret."""

    name: str = ""
    key: str = ""
    optional: bool | None = None


class FileKeySelector(Part, frozen=True, kw_only=True):
    """A reference to one key of an env file in a volume."""

    volume_name: str = ""
    path: str = ""
    key: str = ""
    optional: bool | None = None


class EnvVarSource(Part, frozen=True, kw_only=True):
    """Where the value of an environment variable comes from."""

    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class EnvVar(Part, frozen=True, kw_only=True):
    """One environment variable."""

    name: str = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class OptionalName(Part, frozen=True, kw_only=True):
    """A reference to a ConfigMap or Secret that may be optional."""

    name: str = ""
    optional: bool | None = None


class EnvFromSource(Part, frozen=True, kw_only=True):
    """A source of environment variables: all keys of a ConfigMap or Secret."""

    prefix: str = ""
    config_map_ref: OptionalName | None = None
    secret_ref: OptionalName | None = None


class ResourceClaim(Part, frozen=True, kw_only=True):
    """A container's use of one of the pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Part, frozen=True, kw_only=True):
    """Limits and requests; both map resource names to quantities."""

    limits: Quantities = msgspec.field(default_factory=dict)
    requests: Quantities = msgspec.field(default_factory=dict)
    claims: tuple[ResourceClaim, ...] = ()


class ContainerResizePolicy(Part, frozen=True, kw_only=True):
    """Whether an in-place change of a resource restarts the container."""

    resource_name: str = ""
    restart_policy: str = ""


class ExitCodes(Part, frozen=True, kw_only=True):
    """A set of exit codes, or its complement."""

    operator: Literal["In", "NotIn"] | None = None
    values: tuple[Int32, ...] = ()


class ContainerRestartRule(Part, frozen=True, kw_only=True):
    """The action to take for certain exit codes."""

    action: str = ""
    exit_codes: ExitCodes | None = None


class VolumeMount(Part, frozen=True, kw_only=True):
    """Where a volume of the pod appears in a container."""

    name: str = ""
    read_only: bool = False
    recursive_read_only: Literal["Disabled", "IfPossible", "Enabled"] | None = None
    mount_path: str = ""
    sub_path: str = ""
    mount_propagation: Literal["None", "HostToContainer", "Bidirectional"] | None = None
    sub_path_expr: str = ""


class VolumeDevice(Part, frozen=True, kw_only=True):
    """Where a raw block volume appears in a container."""

    name: str = ""
    device_path: str = ""


class Container(Part, frozen=True, kw_only=True):
    """One container. The default of `image_pull_policy` depends on the image's tag (`defaults.pull_policy`)."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    env: tuple[EnvVar, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    restart_policy: RestartPolicy | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    volume_devices: tuple[VolumeDevice, ...] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: Literal["File", "FallbackToLogsOnError"] = "File"
    image_pull_policy: PullPolicy | None = None
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class EphemeralContainer(Container, frozen=True, kw_only=True):
    """A container added to a running pod for debugging."""

    target_container_name: str = ""
