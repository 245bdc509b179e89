"""The grain of the v1 Pod types: the Struct they all derive from and the scalar types of the Kubernetes API.

Comes in: nothing. Goes out: `Part`, the base of every type here, and the annotated scalars. Next: `meta`, `container`,
`volumes`, `security`, `pod`. Answers to: staging/src/k8s.io/api/core/v1 and apimachinery's resource and intstr.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

LARGEST_INTEGER = 2**53
"""Redis decodes msgpack numbers into Lua doubles: beyond this they would lose digits."""


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One object of the API. What Go cannot tell from absent (empty text, list, map) has the empty value as default.

    A default other than empty stands here only where Kubernetes' default does not depend on anything else and nobody
    needs to know that the field was left out; all other defaulting is `defaults.defaulted`.
    """


Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]

QUANTITY = "quantity"
Quantity = Annotated[str, msgspec.Meta(extra={QUANTITY: True})]
"""A resource quantity as text. Readers of manifests turn numbers into text before they build these types."""

Quantities = dict[str, Quantity]

IntOrString = Int32 | str

Object = dict[str, Any]
"""An object that nothing here looks inside: a map with text keys and plain values."""
