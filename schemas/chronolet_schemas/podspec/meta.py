"""`metadata` of a Pod. Source: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go (ObjectMeta)."""

import msgspec

from chronolet_schemas.podspec.base import Int64, Object, Part


class OwnerReference(Part, frozen=True, kw_only=True):
    """The owner of an object; kept for readers, but not acted on."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Part, frozen=True, kw_only=True):
    """Name, labels and other metadata of an object, with the fields that an API server writes. Times are text."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[Object, ...] = ()
