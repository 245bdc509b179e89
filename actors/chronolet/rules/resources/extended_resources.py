"""Extended resources: those offered by device plugins, and how many a container requests. Pure.

Input: resource names, a container. Output: whether a name is an extended resource; device counts by resource. Source:
IsExtendedResourceName in pkg/apis/core/v1/helper/helpers.go.
"""

from __future__ import annotations

from chronolet.rules.names import names
from chronolet.rules.resources import quantities
from chronolet_schemas.podspec import Container

_NATIVE = "kubernetes.io/"
_QUOTA = "requests."


def is_extended(name: str) -> bool:
    """Return whether `name` is the name of an extended resource, `vendor-domain/type`."""
    if "/" not in name or _NATIVE in name or name.startswith(_QUOTA):
        return False
    return names.qualified_problem(f"{_QUOTA}{name}") is None


def wanted(container: Container) -> dict[str, int]:
    """Return how many devices a container requests of each extended resource; zero counts are omitted."""
    limits = container.resources.limits
    counts = {name: quantities.whole(limits[name]) for name in sorted(limits) if is_extended(name)}
    return {name: count for name, count in counts.items() if count}
