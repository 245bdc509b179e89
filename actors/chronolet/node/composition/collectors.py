"""Builds the collectors of containers and images.

Input: settings, the runtime. Output: the collectors' Kinds, and a warning if this process does not host them. Next:
`kinds`, `main`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from chronolet.adapters.state_folder.pod_logs import PodLogFolders
from chronolet.container_gc import actor as container_actor
from chronolet.container_gc import effects as container_effects
from chronolet.container_gc.inventory import Inventory as ContainerInventory
from chronolet.image_gc import actor as image_actor
from chronolet.image_gc import effects as image_effects
from chronolet.image_gc.inventory import Inventory as ImageInventory
from chronolet.kernel.kind import Kind
from chronolet.node.settings.table import Settings
from chronolet.ports.runtime.images import Images
from chronolet.ports.runtime.runtime import Runtime

_CONSEQUENCES = {"container_gc": "dead containers stay until their pods end", "image_gc": "images are never removed"}


def uncollected(actors: Collection[str]) -> str:
    """Return a warning if this process hosts `pod` but not both collectors; empty otherwise."""
    missing = [kind for kind in _CONSEQUENCES if "pod" in actors and kind not in actors]
    consequences = ", ".join(_CONSEQUENCES[kind] for kind in missing)
    return f"{consequences}, unless another process hosts {' and '.join(missing)}" if missing else ""


def container_gc(settings: Settings, runtime: Runtime, run: Callable[[], str]) -> Kind[Any]:
    """Build the container collector with its workers. `run` returns the log's run id."""
    logs, parallel = PodLogFolders(settings.pod_logs), settings.container_gc_parallel
    inventory = ContainerInventory(runtime, logs, settings.node, settings.container_policy, run, parallel)
    collecting = container_effects.Collecting(
        inventory, settings.container_gc_period / 1000, container_effects.Turns(parallel)
    )
    return container_actor.kind(collecting.effects(), collecting.standing())


def image_gc(settings: Settings, runtime: Runtime, images: Images) -> Kind[Any]:
    """Build the image collector with its workers."""
    inventory = ImageInventory(runtime, images, settings.node, settings.image_policy)
    usage, period = settings.image_usage_period / 1000, settings.image_gc_period / 1000
    collecting = image_effects.Collecting(inventory, usage, period)
    return image_actor.kind(collecting.effects(), collecting.standing())
