"""The composition root: which adapters the actors of this process get, and how the process is put together.

Comes in: settings. Goes out: a `Node`, ready to start. The one place that knows all parts. Next: `main`.
"""

from __future__ import annotations

import importlib.metadata
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from chronolet.adapters.builtin_images import builtin
from chronolet.adapters.cdi import HostCdi
from chronolet.adapters.cgroups import LinuxCgroups
from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.docker_runtime.images import DockerImages
from chronolet.adapters.host import LinuxHost
from chronolet.adapters.http_requests import HttpRequests
from chronolet.adapters.kept_secrets import SecretFiles
from chronolet.adapters.kept_specs import SpecFiles
from chronolet.adapters.manifest_files import read_documents
from chronolet.adapters.manifest_folder import ManifestFolder, NoFolder
from chronolet.adapters.probes import Probing
from chronolet.adapters.probes.results import RedisResults
from chronolet.adapters.registry_keys import HostKeyring, docker_folder
from chronolet.adapters.volumes import HostVolumes
from chronolet.devices import actor as devices
from chronolet.history.archives import NodeArchive
from chronolet.history.entries import entries
from chronolet.keeper import actor as keeper
from chronolet.keeper.disk import Disk
from chronolet.keeper.effects import Keeping
from chronolet.kernel.faults import Faults, NoFaults
from chronolet.kernel.kind import Kind
from chronolet.kernel.process import Process, Setup
from chronolet.kernel.redis_store import RedisStore
from chronolet.kube_events import actor as kube_events
from chronolet.kube_events import effects as kube_events_effects
from chronolet.manifests import actor as manifests
from chronolet.manifests import effects as manifests_effects
from chronolet.node import collecting, event_sinks, node_devices
from chronolet.node.adoption import Adoption, can_adopt
from chronolet.node.health import Health
from chronolet.node.http import Show
from chronolet.node.measured_images import MeasuredImages
from chronolet.node.measured_runtime import MeasuredRuntime, RelistedRuntime
from chronolet.node.metrics import Metrics
from chronolet.node.pages import configz, pod_pages, runtime_pages
from chronolet.node.settings import Settings
from chronolet.node.shares import check, sharing
from chronolet.node.tuning import USUAL, Tuning
from chronolet.pleg import actor as pleg
from chronolet.pleg import effects as pleg_effects
from chronolet.pod import actor as pod
from chronolet.pod import effects as pod_effects
from chronolet.pod.images import Pulls
from chronolet.ports.images import Images
from chronolet.ports.runtime import Runtime
from chronolet.ports.secrets import Secrets
from chronolet.ports.specs import Specs
from chronolet.prober import actor as prober
from chronolet.prober import effects as prober_effects
from chronolet.prober.outside import Outside as ProbersOutside
from chronolet.qos import actor as qos
from chronolet.qos import effects as qos_effects
from chronolet_schemas.keys import shards_of

SHARDS: Mapping[str, int] = {
    "manifests": 1,
    "pod": pod.SHARDS,
    "pleg": 1,
    "prober": prober.SHARDS,
    "container_gc": 1,
    "image_gc": 1,
    "devices": 1,
    "qos": 1,
    "kube_events": 1,
    "keeper": 1,
}
"""Of every kind that a node may have, now or later: a log's first event fixes them for ever (DESIGN 1)."""


@dataclass(frozen=True, slots=True)
class Node:
    """The parts of a process of the node."""

    settings: Settings
    store: RedisStore
    runtime: Runtime
    images: Images
    metrics: Metrics
    health: Health
    process: Process
    disk: Disk
    probing: Probing
    results: RedisResults
    pages: Mapping[str, Show]
    """HTTP pages beside those of health and metrics."""


def build(settings: Settings, faults: Faults | None = None, tuning: Tuning = USUAL) -> Node:
    """Put the process together; nothing runs yet, and nothing outside was asked. OSError if the state folder cannot be
    written.
    """
    metrics, health = Metrics(settings.node), Health()
    store = RedisStore(settings.redis_url, settings.node)
    docker = DockerRuntime(settings.docker)
    runtime = MeasuredRuntime(docker, metrics)
    images = MeasuredImages(DockerImages(settings.docker), metrics)
    relisted = RelistedRuntime(docker, metrics, settings.pleg_relist_threshold)
    archive = NodeArchive(settings.root_dir, settings.node, store)
    disk = Disk()
    keeping = Keeping(
        store=store,
        archive=archive.current,
        shards=[shard for kind, count in SHARDS.items() for shard in shards_of(kind, count)],
        now=_now,
        disk=disk,
        announce=lambda: store.announce(_announcement(settings)),
        measure_seconds=tuning.measure_seconds,
    )
    specs = SpecFiles(settings.root_dir)
    secrets = SecretFiles(settings.root_dir, settings.node)
    if "manifests" in settings.actors:
        secrets.prepare()

    def run() -> str:
        return process.run

    shares, cgroups = sharing(settings), LinuxCgroups(settings.root_dir / "cgroups")
    host = LinuxHost(settings.root_dir)
    if "qos" in settings.actors:
        check(shares, host, cgroups)
    holding = qos_effects.Outside(
        shares, cgroups, runtime, host, observe=metrics.cgroup, told=metrics.cgroup_version.set
    )
    probing, results = Probing(runtime), RedisResults(settings.redis_url, settings.node)
    probes = ProbersOutside(probing, results, metrics.probes)
    kinds = _kinds(
        settings,
        runtime,
        relisted,
        {
            "keeper": lambda: keeper.kind(keeping, tuning.policy),
            "devices": lambda: node_devices.kind(settings, store, archive, metrics.devices),
        },
        probes,
        holding=holding,
        images=images,
        specs=specs,
        secrets=secrets,
        run=run,
        event_pause=tuning.event_pause,
    )
    adoption = Adoption(store, runtime, specs, settings.node, secrets=secrets, host=host)
    process = Process(
        Setup(
            node=settings.node,
            store=store,
            kinds=kinds,
            shards=SHARDS,
            history=lambda after: entries(store, archive, after),
            locks=settings.root_dir / "locks",
            address=settings.http_address,
            faults=faults or NoFaults(),
            observer=metrics,
            adopt=adoption.adopt if can_adopt(settings.actors) else None,
        )
    )
    if "pleg" in settings.actors:
        # A process that stands by has no pleg at work, and none to wait for.
        health.add("pleg", lambda: "" if process.phase == "standing by" else relisted.stalled())
        health.add("pleg", lambda: "" if process.phase == "standing by" else relisted.unhealthy(), ready_only=True)
    health.add("redis", lambda: "" if process.lease.answered() else "did not answer in time", ready_only=True)
    pages = _pages(settings, store, archive, runtime)
    return Node(settings, store, runtime, images, metrics, health, process, disk, probing, results, pages)


def _pages(settings: Settings, store: RedisStore, archive: NodeArchive, runtime: Runtime) -> dict[str, Show]:
    """Node-wide pages where the node's pods and containers are looked after."""
    pages = {"/configz": configz(settings)}
    if "pod" in settings.actors:
        pages |= pod_pages(settings, store, archive, pod.kind(), devices.kind())
    if "pleg" in settings.actors:
        pages |= runtime_pages(settings, runtime)
    return pages


def _now() -> int:
    return time.time_ns() // 1_000_000


def _announcement(settings: Settings) -> str:
    """The node's line in the list of nodes, as JSON."""
    try:
        version = importlib.metadata.version("chronolet")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        version = ""
    line = {"seen": _now(), "version": version, "address": settings.http_address}
    return msgspec.json.encode(line).decode()


def _kinds(
    settings: Settings,
    runtime: Runtime,
    relisted: Runtime,
    others: Mapping[str, Callable[[], Kind[Any]]],
    probes: ProbersOutside,
    *,
    holding: qos_effects.Outside,
    images: Images,
    specs: Specs,
    secrets: Secrets,
    run: Callable[[], str],
    event_pause: int,
) -> dict[str, Kind[Any]]:
    node = settings.node
    rescan, relist = settings.file_check_frequency / 1000, settings.pleg_relist_period / 1000
    folder = ManifestFolder(settings.pod_manifest_path, rescan) if settings.pod_manifest_path else NoFolder()
    outside = pod_effects.Outside(
        runtime=runtime,
        volumes=HostVolumes(settings.root_dir),
        node=node,
        pause_image=settings.pod_infra_container_image,
        builtin=builtin,
        pulls=_pulls(settings, secrets),
        specs=specs,
        requests=HttpRequests(),
        host=LinuxHost(settings.root_dir),
        cdi=HostCdi(settings.cdi_spec_dirs),
        run=run,
    )
    makers: dict[str, Callable[[], Kind[Any]]] = {
        "manifests": lambda: manifests.kind(manifests_effects.jobs(folder, node, read_documents, secrets)),
        "pod": lambda: pod.kind(pod_effects.jobs(outside), settings.takes_part),
        "pleg": lambda: pleg.kind(
            pleg_effects.jobs(
                relisted,
                node,
                steady_seconds=relist,
                threshold_seconds=settings.pleg_relist_threshold / 1000,
                run=run,
            ),
            node,
        ),
        "prober": lambda: prober.kind(prober_effects.jobs(probes)),
        "kube_events": lambda: _kube_events(settings, event_pause),
        "qos": lambda: qos.kind(qos_effects.jobs(holding)),
        "container_gc": lambda: collecting.container_gc(settings, runtime, run),
        "image_gc": lambda: collecting.image_gc(settings, runtime, images),
        **others,
    }
    return {name: makers[name]() for name in settings.actors}


def _kube_events(settings: Settings, pause: int) -> Kind[Any]:
    sinks = event_sinks.sinks(settings)
    return kube_events.kind(kube_events_effects.jobs(sinks), event_sinks.policy(settings, sinks, pause))


def _pulls(settings: Settings, secrets: Secrets) -> Pulls:
    return Pulls(
        keyring=HostKeyring(docker_folder(os.environ), secrets),
        at_once=settings.pulls_at_once,
        patience_seconds=settings.image_pull_progress_deadline / 1000,
    )
