"""Builds the adapters of one process, each once, without contacting any outside system.

Input: settings. Output: `Parts`. Next: `kinds` passes them to the actors, `wiring` to the pages and the process.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable

from msgspec import Struct

from chronolet.adapters.archive.places import place
from chronolet.adapters.cgroups import LinuxCgroups
from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.docker_runtime.connection import Permit
from chronolet.adapters.docker_runtime.images import DockerImages
from chronolet.adapters.machine.host import LinuxHost
from chronolet.adapters.machine.kernel_log import KernelLog
from chronolet.adapters.probes import Probing
from chronolet.adapters.probes.results.segment_stream import RedisSegments
from chronolet.adapters.probes.results.writer import RedisResults
from chronolet.adapters.state_folder.secrets import SecretFiles
from chronolet.adapters.state_folder.specs import SpecFiles
from chronolet.history.archives import NodeArchive
from chronolet.keeper.disk import DiskReports
from chronolet.keeper.workers.problems import ArchiveProblem
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.node.composition.shares import check, sharing
from chronolet.node.metrics.measured_images import MeasuredImages
from chronolet.node.metrics.measured_runtime import MeasuredRuntime, RelistedRuntime
from chronolet.node.metrics.metrics import Metrics
from chronolet.node.settings.table import Settings
from chronolet.node.stats.running import Running
from chronolet.node.tuning import DEFAULTS, Tuning
from chronolet.ports.machine.kernel_log import Kills
from chronolet.qos import effects as qos_effects
from chronolet.qos.system import system


class Parts(Struct, frozen=True):
    """The adapters of one process. `relisted` is the runtime for pleg: its listings feed the node's health check."""

    settings: Settings
    metrics: Metrics
    store: RedisStore
    archive: NodeArchive
    running: Running
    runtime: MeasuredRuntime
    relisted: RelistedRuntime
    images: MeasuredImages
    specs: SpecFiles
    secrets: SecretFiles
    host: LinuxHost
    kills: Kills
    shares: qos_effects.QosDependencies
    probing: Probing
    results: RedisResults
    segments: RedisSegments
    disk: DiskReports
    archive_problem: ArchiveProblem


def parts(settings: Settings, permit: Permit, process: Callable[[], str], tuning: Tuning = DEFAULTS) -> Parts:
    """Build all adapters. `permit` raises Refusal if the engine that answers is not the node's; `process` returns the
    name of this process.

    Raises OSError if the state folder cannot be written, and SettingsError if the machine's resources cannot be divided
    as configured, or if its cgroups belong to another owner.
    """
    running = Running()
    metrics, store = Metrics(settings.node), RedisStore(settings.redis_url, settings.node)
    docker = DockerRuntime(settings.docker, permit=permit)
    runtime = MeasuredRuntime(docker, metrics, running)
    secrets = SecretFiles(settings.root_dir, settings.node)
    if "manifests" in settings.actors:
        secrets.prepare()
    archive_problem = ArchiveProblem()
    metrics.archive.show(archive_problem.current)
    host, kills = LinuxHost(settings.root_dir), KernelLog()
    return Parts(
        settings=settings,
        metrics=metrics,
        store=store,
        archive=NodeArchive(place(settings.archive, settings.root_dir), settings.node, store),
        running=running,
        runtime=runtime,
        relisted=RelistedRuntime(docker, metrics, settings.pleg_relist_threshold, running),
        images=MeasuredImages(DockerImages(settings.docker, permit=permit), metrics),
        specs=SpecFiles(settings.root_dir),
        secrets=secrets,
        host=host,
        kills=kills,
        shares=_shares(settings, metrics, runtime, host, kills),
        probing=Probing(runtime),
        results=RedisResults(
            settings.redis_url,
            settings.node,
            metrics.probes.lost,
            process=process,
            segment_seconds=tuning.segment_seconds,
        ),
        segments=RedisSegments(settings.redis_url, settings.node),
        disk=DiskReports(),
        archive_problem=archive_problem,
    )


def _shares(
    settings: Settings, metrics: Metrics, runtime: MeasuredRuntime, host: LinuxHost, kills: Kills
) -> qos_effects.QosDependencies:
    shares, cgroups = sharing(settings), LinuxCgroups(settings.root_dir / "cgroups")
    if "qos" in settings.actors:
        check(shares, host, cgroups)
    machine, version = platform.machine(), agent_version()
    return qos_effects.QosDependencies(
        shares,
        cgroups,
        runtime,
        host,
        kills,
        observe=metrics.cgroup,
        on_version=metrics.cgroup_version.set,
        system=lambda engine: system(
            host,
            engine,
            name=settings.node,
            machine=machine,
            version=version,
            machine_id_file=str(settings.machine_id_file),
        ),
    )


def agent_version() -> str:
    """Return the version of the installed release; empty if the agent runs from a checkout."""
    try:
        return importlib.metadata.version("chronolet")
    except importlib.metadata.PackageNotFoundError:
        return ""
