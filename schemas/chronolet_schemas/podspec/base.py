"""Base of the v1 Pod types: the common Struct, and the scalar types of the Kubernetes API.

Input: none. Output: `Part`, the base class of every type here, and the annotated scalars. Next: `meta`, `container`,
`volumes`, `security`, `pod`. Source: staging/src/k8s.io/api/core/v1 and apimachinery's resource and intstr.
"""

from typing import Annotated, Any

import msgspec

LARGEST_INTEGER = 2**53
"""The largest integer allowed: Redis decodes msgpack numbers into Lua doubles, which lose precision beyond this."""


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base class for one object of the API.

    Fields whose empty value Go cannot distinguish from an absent one (text, list, map) default to empty. A non-empty
    default is set here only if Kubernetes' default depends on nothing else and it does not matter whether the field was
    given; all other defaults are applied by `defaults.defaulted`.
    """


Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]

QUANTITY = "quantity"
Quantity = Annotated[str, msgspec.Meta(extra={QUANTITY: True})]
"""A resource quantity as text. Readers of manifests convert numbers to text before they build these types."""

Quantities = dict[str, Quantity]

IntOrString = Int32 | str

Object = dict[str, Any]
"""An opaque object: a map with text keys and plain values."""
