"""The v1 Pod: its types, defaults, plain form and digest, and findings about a manifest.

Input: plain data read from YAML or JSON. Output: frozen Structs that are stored as msgpack in Redis: integers stay
below 2^53, and typed fields contain no floats and no bytes. Depends only on msgspec.
"""

from chronolet_schemas.podspec.actions import (
    ExecAction,
    GRPCAction,
    HTTPGetAction,
    HTTPHeader,
    Lifecycle,
    LifecycleHandler,
    Probe,
    SleepAction,
    TCPSocketAction,
)
from chronolet_schemas.podspec.base import LARGEST_INTEGER, QUANTITY, Object, Part
from chronolet_schemas.podspec.container import (
    Container,
    ContainerPort,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    EphemeralContainer,
    Protocol,
    PullPolicy,
    ResourceRequirements,
    RestartPolicy,
    VolumeDevice,
    VolumeMount,
)
from chronolet_schemas.podspec.defaults import DEFAULT_NAMESPACE, defaulted, pull_policy
from chronolet_schemas.podspec.findings import BLOCKING, WARNING, Finding, ManifestError, Severity
from chronolet_schemas.podspec.meta import ObjectMeta, OwnerReference
from chronolet_schemas.podspec.plain import digest, from_plain, plain, to_plain
from chronolet_schemas.podspec.pod import Pod, PodSpec
from chronolet_schemas.podspec.security import (
    Capabilities,
    PodSecurityContext,
    Profile,
    SecurityContext,
    SELinuxOptions,
)
from chronolet_schemas.podspec.volumes import DownwardAPIVolume, DownwardFile, EmptyDir, HostPath, Volume

__all__ = [
    "BLOCKING",
    "DEFAULT_NAMESPACE",
    "LARGEST_INTEGER",
    "QUANTITY",
    "WARNING",
    "Capabilities",
    "Container",
    "ContainerPort",
    "DownwardAPIVolume",
    "DownwardFile",
    "EmptyDir",
    "EnvFromSource",
    "EnvVar",
    "EnvVarSource",
    "EphemeralContainer",
    "ExecAction",
    "Finding",
    "GRPCAction",
    "HTTPGetAction",
    "HTTPHeader",
    "HostPath",
    "Lifecycle",
    "LifecycleHandler",
    "ManifestError",
    "Object",
    "ObjectMeta",
    "OwnerReference",
    "Part",
    "Pod",
    "PodSecurityContext",
    "PodSpec",
    "Probe",
    "Profile",
    "Protocol",
    "PullPolicy",
    "ResourceRequirements",
    "RestartPolicy",
    "SELinuxOptions",
    "SecurityContext",
    "Severity",
    "SleepAction",
    "TCPSocketAction",
    "Volume",
    "VolumeDevice",
    "VolumeMount",
    "defaulted",
    "digest",
    "from_plain",
    "plain",
    "pull_policy",
    "to_plain",
]
