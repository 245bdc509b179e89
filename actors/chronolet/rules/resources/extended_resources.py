"""Extended resources: what device plugins offer, and what containers want of it. Pure.

Input: names of resources, a container. Output: whether a name is one of an extended resource; how many devices of
which. Answers to: IsExtendedResourceName in pkg/apis/core/v1/helper/helpers.go.
"""

from __future__ import annotations

from chronolet.rules.names import names
from chronolet.rules.resources import quantities
from chronolet_schemas.podspec import Container

_NATIVE = "kubernetes.io/"
_QUOTA = "requests."


def is_extended(name: str) -> bool:
    """Whether a resource of this name can be a device plugin's: `vendor-domain/type`."""
    if "/" not in name or _NATIVE in name or name.startswith(_QUOTA):
        return False
    return names.qualified_problem(f"{_QUOTA}{name}") is None


def wanted(container: Container) -> dict[str, int]:
    """How many devices of each extended resource a container wants, by name; what it wants none of is left out."""
    limits = container.resources.limits
    counts = {name: quantities.whole(limits[name]) for name in sorted(limits) if is_extended(name)}
    return {name: count for name, count in counts.items() if count}
