"""Volumes of every kind. Source: Volume and VolumeSource in core/v1/types.go.

Kinds that a node can serve by itself are fully typed; others, such as cloud volumes, are only known by name.
"""

from typing import Literal

import msgspec

from chronolet_schemas.podspec.base import Int32, Int64, Object, Part, Quantity
from chronolet_schemas.podspec.container import ObjectFieldSelector, ResourceFieldSelector

DEFAULT_MODE = 0o644


class EmptyDir(Part, frozen=True, kw_only=True):
    """A folder that exists as long as its pod."""

    medium: str = ""
    size_limit: Quantity = ""


class HostPath(Part, frozen=True, kw_only=True):
    """A path on the node. `type`: what must exist there, or is created if missing."""

    path: str = ""
    type: Literal[
        "", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"
    ] = ""


class KeyToPath(Part, frozen=True, kw_only=True):
    """One key of a ConfigMap or Secret, as a file."""

    key: str = ""
    path: str = ""
    mode: Int32 | None = None


class ConfigMapVolume(Part, frozen=True, kw_only=True):
    """The keys of a ConfigMap as files."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 = DEFAULT_MODE
    optional: bool | None = None


class SecretVolume(Part, frozen=True, kw_only=True):
    """The keys of a Secret as files."""

    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 = DEFAULT_MODE
    optional: bool | None = None


class DownwardFile(Part, frozen=True, kw_only=True):
    """One field of the pod as a file."""

    path: str = ""
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: Int32 | None = None


class DownwardAPIVolume(Part, frozen=True, kw_only=True):
    """Fields of the pod as files."""

    items: tuple[DownwardFile, ...] = ()
    default_mode: Int32 = DEFAULT_MODE


class NamedProjection(Part, frozen=True, kw_only=True):
    """A ConfigMap or Secret in a projected volume."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class DownwardProjection(Part, frozen=True, kw_only=True):
    """Fields of the pod in a projected volume."""

    items: tuple[DownwardFile, ...] = ()


class TokenProjection(Part, frozen=True, kw_only=True):
    """A service account's token in a projected volume."""

    audience: str = ""
    expiration_seconds: Int64 = 3600
    path: str = ""


class TrustBundleProjection(Part, frozen=True, kw_only=True):
    """Certificates of a ClusterTrustBundle in a projected volume."""

    name: str = ""
    signer_name: str = ""
    label_selector: Object = msgspec.field(default_factory=dict)
    optional: bool | None = None
    path: str = ""


class CertificateProjection(Part, frozen=True, kw_only=True):
    """A key and certificate issued for the pod, in a projected volume."""

    signer_name: str = ""
    key_type: str = ""
    max_expiration_seconds: Int32 | None = None
    credential_bundle_path: str = ""
    key_path: str = ""
    certificate_chain_path: str = ""
    user_annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Projection(Part, frozen=True, kw_only=True):
    """One source of a projected volume."""

    secret: NamedProjection | None = None
    downward_api: DownwardProjection | None = msgspec.field(default=None, name="downwardAPI")
    config_map: NamedProjection | None = None
    service_account_token: TokenProjection | None = None
    cluster_trust_bundle: TrustBundleProjection | None = None
    pod_certificate: CertificateProjection | None = None


class ProjectedVolume(Part, frozen=True, kw_only=True):
    """A volume that combines several sources in one folder."""

    sources: tuple[Projection, ...] = ()
    default_mode: Int32 = DEFAULT_MODE


class ClaimVolume(Part, frozen=True, kw_only=True):
    """A PersistentVolumeClaim, referred to by name."""

    claim_name: str = ""
    read_only: bool = False


class NFSVolume(Part, frozen=True, kw_only=True):
    """An NFS export."""

    server: str = ""
    path: str = ""
    read_only: bool = False


class ImageVolume(Part, frozen=True, kw_only=True):
    """The content of an image as a read-only folder."""

    reference: str = ""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None


class Volume(Part, frozen=True, kw_only=True):
    """A volume of a pod: a name and exactly one source."""

    name: str = ""
    host_path: HostPath | None = None
    empty_dir: EmptyDir | None = None
    secret: SecretVolume | None = None
    config_map: ConfigMapVolume | None = None
    downward_api: DownwardAPIVolume | None = msgspec.field(default=None, name="downwardAPI")
    projected: ProjectedVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    nfs: NFSVolume | None = None
    image: ImageVolume | None = None
    ephemeral: Object | None = None
    csi: Object | None = None
    iscsi: Object | None = None
    fc: Object | None = None
    flex_volume: Object | None = None
    gce_persistent_disk: Object | None = None
    aws_elastic_block_store: Object | None = None
    git_repo: Object | None = None
    glusterfs: Object | None = None
    rbd: Object | None = None
    cinder: Object | None = None
    cephfs: Object | None = None
    flocker: Object | None = None
    azure_file: Object | None = None
    azure_disk: Object | None = None
    vsphere_volume: Object | None = None
    quobyte: Object | None = None
    photon_persistent_disk: Object | None = None
    portworx_volume: Object | None = None
    scale_io: Object | None = msgspec.field(default=None, name="scaleIO")
    storageos: Object | None = None
