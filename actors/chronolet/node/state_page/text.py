"""The Prometheus text format, for series whose label sets are rendered once and used by many metrics. Pure.

Input: names, labels, values. Output: text. Next: `pods`, `containers`, `node`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from chronolet.node.stats.cadvisor_metrics import escaped

T = TypeVar("T")

Sample = tuple[str, float]
"""The labels that a sample has in addition to those of its object, as text (`,phase="Running"`), and its value."""

_NOT_IN_A_LABEL = re.compile("[^a-zA-Z0-9_]")
_UNITS: Mapping[str, str] = {"cpu": "core", "memory": "byte", "storage": "byte", "ephemeral-storage": "byte"}
_BYTES = ("hugepages-",)


class Family(NamedTuple, Generic[T]):
    """A metric of many objects. `read` returns the samples of one object."""

    name: str
    kind: str
    help: str
    read: Callable[[T], Iterable[Sample]]

    def head(self) -> str:
        """Render the lines that precede the samples."""
        return f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}\n"

    def lines(self, labels: str, one: T) -> str:
        """Render the samples of one object; empty if there are none. `labels`: the object's rendered labels."""
        return "".join([f"{self.name}{{{labels}{more}}} {value}\n" for more, value in self.read(one)])


def rendered(labels: Mapping[str, str]) -> str:
    """Render labels, without braces."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())


def label(name: str, value: str) -> str:
    """Render a label that follows others, with a leading comma."""
    return f',{name}="{escaped(value)}"'


def resource(name: str) -> str:
    """Render the labels `resource` and `unit` of a Kubernetes resource name, with a leading comma."""
    unit = _UNITS.get(name) or ("byte" if name.startswith(_BYTES) else "integer")
    return f',resource="{_NOT_IN_A_LABEL.sub("_", name)}",unit="{unit}"'
