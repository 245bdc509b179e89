"""The fake devices of one resource, and their list.

Input: commands. Output: lists, and a wake-up for the thread that sends them. Next: `service`.
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
    """The fake devices of one resource. `health` maps each id, in order, to its health. `numa_nodes`: number of NUMA
    nodes to spread the devices over, 0 for none.
    """

    prefix: str
    count: int
    numa_nodes: int = 0
    first_twice: bool = False
    health: dict[str, str] = field(default_factory=dict)
    changes: int = 0
    """Number of changes; identifies the newest list."""
    news: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.health = {f"{self.prefix}-{number}": HEALTHY for number in range(self.count)}

    def set(self, health: str, ids: Sequence[str]) -> None:
        """Set the health of devices; unknown devices are added. Without ids, set the health of all devices. Raises
        ValueError if there would be more than MOST_DEVICES.
        """
        with self.news:
            changed = self.health | dict.fromkeys(ids or list(self.health), health)
            if len(changed) > MOST_DEVICES:
                raise ValueError(f"found {len(changed)} devices, expected at most {MOST_DEVICES}")
            self.health = changed
            self._changed()

    def remove(self, ids: Sequence[str]) -> None:
        """Remove devices."""
        with self.news:
            for one in ids:
                self.health.pop(one, None)
            self._changed()

    def again(self) -> None:
        """Send the same list again."""
        with self.news:
            self._changed()

    def listing(self) -> api.ListAndWatchResponse:
        """Return the current list."""
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
    """Return the number at the end of an id; 0 if there is none."""
    found = re.search(r"\d+$", name)
    return int(found[0]) if found else 0


def preferred(available: Sequence[str], must_include: Sequence[str], size: int) -> list[str]:
    """Return `size` preferred devices: `must_include`, then those with the highest numbers, which a kubelet would not
    choose by itself.
    """
    rest = sorted((one for one in available if one not in must_include), key=number, reverse=True)
    return [*must_include, *rest][:size]
