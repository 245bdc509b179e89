"""The composition root: assembles an agent process from its parts.

Input: settings. Output: a `Node`, ready to start. Only this module combines adapters, kinds, pages and the process.
Next: `main`.
"""

from __future__ import annotations

import socket
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
from chronolet.node.composition.description import description
from chronolet.node.composition.kinds import SHARDS, kinds
from chronolet.node.composition.parts import Parts, agent_version, parts
from chronolet.node.composition.sites import Sited, sited
from chronolet.node.health import Health
from chronolet.node.http.pages import configz, pod_pages, runtime_pages, usage_pages
from chronolet.node.http.server import Show
from chronolet.node.metrics.kernel import Ownership
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import SettingsError
from chronolet.node.stats.assembly import Stats
from chronolet.node.tracing.follower import StartTraces
from chronolet.node.tuning import DEFAULTS, Tuning
from chronolet.pleg import actor as pleg
from chronolet.pod import actor as pod
from chronolet.qos import actor as qos


class Node(Struct, frozen=True):
    """An assembled agent process."""

    settings: Settings
    parts: Parts
    health: Health
    process: Process
    sited: Sited
    pages: Mapping[str, Show]
    """HTTP pages by path, except /healthz, /readyz, /trace and the agent's own metrics."""
    stats: Stats | None
    """Samples the resource usage of the node and its pods; None if this process does not host `pleg`."""
    traces: StartTraces | None = None
    """Makes traces of pod starts; None if no collector is configured, or if this process does not host `pod`."""


def build(settings: Settings, faults: Faults | None = None, tuning: Tuning = DEFAULTS) -> Node:
    """Assemble the process, without starting anything or contacting any outside system. Raises OSError if the state
    folder cannot be written, and SettingsError if the machine's resources cannot be divided as configured, or if its
    cgroups belong to another owner.
    """

    def permit() -> None:
        site.guard.permit()

    def run() -> str:
        return process.run

    def process_id() -> str:
        return process.id

    adapters = parts(settings, permit, process_id, tuning)
    site = sited(settings, adapters.store, adapters.archive, process_id)
    process = _process(adapters, kinds(adapters, tuning, run), site, faults or NoFaults(), tuning)
    adapters.metrics.watch(_ownership(process))
    stats = Stats(settings, adapters.runtime, adapters.running) if "pleg" in settings.actors else None
    health, pages = _health(adapters, process, site), _pages(adapters, stats)
    return Node(settings, adapters, health, process, site, pages, stats, _traces(adapters))


def _traces(adapters: Parts) -> StartTraces | None:
    """Raises SettingsError if OpenTelemetry's SDK is needed and not installed."""
    settings, metrics = adapters.settings, adapters.metrics
    if not settings.tracing_endpoint or "pod" not in settings.actors:
        return None
    try:
        from chronolet.node.tracing.exporter import OtlpExporter  # noqa: PLC0415 - an extra, not installed by default
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"--tracing-endpoint: the package {error.name} is not installed; "
            "install the extra: pip install 'chronolet[otel]'"
        ) from error
    exporter = OtlpExporter(settings.tracing_endpoint, settings.node, agent_version())
    traces = StartTraces(adapters.store, adapters.archive, metrics.spans, exporter)
    metrics.on_event = traces.notice
    return traces


def _ownership(process: Process) -> Ownership:
    return Ownership(
        valid=process.lease.valid,
        lapses=lambda: max(0, process.lease.lapses - 1),  # the first renewal counts as a lapse, too
        quarantined=lambda: len(process.quarantined()),
    )


def _process(adapters: Parts, hosted: Mapping[str, Kind[Any]], site: Sited, faults: Faults, tuning: Tuning) -> Process:
    settings, store, archive = adapters.settings, adapters.store, adapters.archive
    adoption = Adoption(
        store,
        adapters.runtime,
        adapters.specs,
        settings.node,
        secrets=adapters.secrets,
        host=adapters.host,
        states=lambda: state_at(store, archive, (manifests.kind(), pod.kind())).states,
    )
    return Process(
        Setup(
            node=settings.node,
            store=store,
            kinds=hosted,
            shards={**SHARDS, **settings.shards},
            chosen_shards=settings.shards,
            name=settings.process_name,
            host=socket.gethostname(),
            history=lambda after: entries(store, archive, after),
            locks=settings.root_dir / "locks",
            log_end=settings.root_dir / "log-end",
            address=settings.http_address,
            faults=faults,
            observer=adapters.metrics,
            adopt=adoption.adopt if can_adopt(settings.actors) else None,
            describe=lambda process: description(settings, site.identities.latest, process),
            refuses=site.guard.refuses,
            lease_milliseconds=tuning.lease_milliseconds,
            timing=tuning.timing,
        )
    )


def _health(adapters: Parts, process: Process, site: Sited) -> Health:
    health, relisted = Health(), adapters.relisted

    def hosts_pleg() -> bool:
        return any(shard.kind == "pleg" for shard in process.lease.tokens)

    if "pleg" in adapters.settings.actors:

        def idle() -> bool:
            """Whether this process does not run pleg, and is not about to."""
            elsewhere = process.phase in ("running", "standing by") and not hosts_pleg()
            return elsewhere or bool(site.guard.reason())

        health.add("pleg", lambda: relisted.stalled() if hosts_pleg() else "")
        health.add("pleg", lambda: "" if idle() else relisted.unhealthy(), ready_only=True)
    if "keeper" in adapters.settings.actors:
        health.add("archive", adapters.archive_problem.current, ready_only=True)
    if site.touching:
        health.add("site", site.guard.reason, ready_only=True, remark=site.guard.remark)
    health.add("redis", lambda: "" if process.lease.answered() else "did not answer in time", ready_only=True)
    return health


def _pages(adapters: Parts, stats: Stats | None) -> dict[str, Show]:
    """Build the node-wide pages for the actor kinds that this process hosts."""
    settings = adapters.settings
    pages = {"/configz": configz(settings)}
    if "pod" in settings.actors:
        pages |= pod_pages(
            settings, adapters.store, adapters.archive, pod.kind(), devices.kind(), qos.kind(), pleg.kind()
        )
    if stats is not None:
        pages |= runtime_pages(settings, adapters.runtime) | usage_pages(settings, stats.latest)
    return pages
