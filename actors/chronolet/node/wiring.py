"""The composition root: how a process of the node is put together.

Comes in: settings. Goes out: a `Node`, ready to start. The one place that knows all parts. Next: `main`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from chronolet.devices import actor as devices
from chronolet.history.entries import entries
from chronolet.history.state import state_at
from chronolet.kernel.faults import Faults, NoFaults
from chronolet.kernel.hosting.process import Process, Setup
from chronolet.kernel.kind import Kind
from chronolet.manifests import actor as manifests
from chronolet.node.adoption import Adoption, can_adopt
from chronolet.node.health import Health
from chronolet.node.http.pages import configz, pod_pages, runtime_pages, usage_pages
from chronolet.node.http.server import Show
from chronolet.node.kinds import SHARDS, kinds
from chronolet.node.parts import Parts, parts
from chronolet.node.settings.table import Settings
from chronolet.node.stats.assembly import Stats
from chronolet.node.tuning import USUAL, Tuning
from chronolet.pod import actor as pod


class Node(Struct, frozen=True):
    """A process of the node."""

    settings: Settings
    parts: Parts
    health: Health
    process: Process
    pages: Mapping[str, Show]
    """HTTP pages beside those of health and metrics."""
    stats: Stats | None
    """What samples the use of the node and its pods; None where this process looks after no containers."""


def build(settings: Settings, faults: Faults | None = None, tuning: Tuning = USUAL) -> Node:
    """Put the process together; nothing runs yet, and nothing outside was asked. OSError if the state folder cannot be
    written, SettingsError if the machine cannot be shared out as the settings want it.
    """
    having = parts(settings)

    def run() -> str:
        return process.run

    process = _process(having, kinds(having, tuning, run), faults or NoFaults())
    stats = Stats(settings, having.runtime, having.running) if "pleg" in settings.actors else None
    return Node(settings, having, _health(having, process), process, _pages(having, stats), stats)


def _process(having: Parts, hosted: Mapping[str, Kind[Any]], faults: Faults) -> Process:
    settings, store, archive = having.settings, having.store, having.archive
    adoption = Adoption(
        store,
        having.runtime,
        having.specs,
        settings.node,
        secrets=having.secrets,
        host=having.host,
        states=lambda: state_at(store, archive, (manifests.kind(), pod.kind())).states,
    )
    return Process(
        Setup(
            node=settings.node,
            store=store,
            kinds=hosted,
            shards=SHARDS,
            history=lambda after: entries(store, archive, after),
            locks=settings.root_dir / "locks",
            log_end=settings.root_dir / "log-end",
            address=settings.http_address,
            faults=faults,
            observer=having.metrics,
            adopt=adoption.adopt if can_adopt(settings.actors) else None,
        )
    )


def _health(having: Parts, process: Process) -> Health:
    health, relisted = Health(), having.relisted
    if "pleg" in having.settings.actors:
        # A process that stands by has no pleg at work, and none to wait for.
        health.add("pleg", lambda: "" if process.phase == "standing by" else relisted.stalled())
        health.add("pleg", lambda: "" if process.phase == "standing by" else relisted.unhealthy(), ready_only=True)
    health.add("redis", lambda: "" if process.lease.answered() else "did not answer in time", ready_only=True)
    return health


def _pages(having: Parts, stats: Stats | None) -> dict[str, Show]:
    """Node-wide pages where the node's pods and containers are looked after."""
    settings = having.settings
    pages = {"/configz": configz(settings)}
    if "pod" in settings.actors:
        pages |= pod_pages(settings, having.store, having.archive, pod.kind(), devices.kind())
    if stats is not None:
        pages |= runtime_pages(settings, having.runtime) | usage_pages(settings, stats.latest)
    return pages
