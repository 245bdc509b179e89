"""The fake devices of one resource, and what is said of them.

Comes in: commands. Goes out: lists, and a wake-up for who sends them. Next: `service`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from chronolet_schemas.protos import deviceplugin_pb2 as api

MOST_DEVICES = 100_000
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"


@dataclass
class Devices:
    """Ids in their order, each with its health. `numa_nodes`: over how many nodes they are spread, 0 for none."""

    prefix: str
    count: int
    numa_nodes: int = 0
    first_twice: bool = False
    health: dict[str, str] = field(default_factory=dict)
    changes: int = 0
    """How often something has changed: who has sent the list of this number has sent the newest."""
    news: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.health = {f"{self.prefix}-{number}": HEALTHY for number in range(self.count)}

    def set(self, health: str, ids: Sequence[str]) -> None:
        """Devices turn healthy or unhealthy; unknown ones are added. No ids stand for all."""
        with self.news:
            changed = self.health | dict.fromkeys(ids or list(self.health), health)
            if len(changed) > MOST_DEVICES:
                raise ValueError(f"found {len(changed)} devices, expected at most {MOST_DEVICES}")
            self.health = changed
            self._changed()

    def remove(self, ids: Sequence[str]) -> None:
        """Devices are not there any more."""
        with self.news:
            for one in ids:
                self.health.pop(one, None)
            self._changed()

    def again(self) -> None:
        """The same list once more."""
        with self.news:
            self._changed()

    def listing(self) -> api.ListAndWatchResponse:
        """All of them, now."""
        with self.news:
            ids = list(self.health)
            return api.ListAndWatchResponse(devices=[self._device(one) for one in ids[: self.first_twice] + ids])

    def _changed(self) -> None:
        self.changes += 1
        self.news.notify_all()

    def _device(self, name: str) -> api.Device:
        device = api.Device(ID=name, health=self.health[name])
        if self.numa_nodes:
            device.topology.nodes.add(ID=number(name) % self.numa_nodes)
        return device


def number(name: str) -> int:
    """The number at the end of an id; those without one are all the same."""
    found = re.search(r"\d+$", name)
    return int(found[0]) if found else 0


def preferred(available: Sequence[str], must_include: Sequence[str], size: int) -> list[str]:
    """What is preferred: the highest numbers. A kubelet by itself would take any."""
    rest = sorted((one for one in available if one not in must_include), key=number, reverse=True)
    return [*must_include, *rest][:size]
