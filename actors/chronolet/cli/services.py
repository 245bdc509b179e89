"""Creates the external dependencies of commands on demand. Tests replace them.

Input: settings. Output: `Services`: factories for the node's store, archive, runtime, images, pod logs, Secrets,
KubeEvents, probe results, kinds and spans, for cgroups and downloads; the clock. Next: `history` and the commands.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.node.settings.values import SettingsError

if TYPE_CHECKING:  # each command loads only what it uses
    from chronolet.history.archives import NodeArchive
    from chronolet.history.derived.checkpoint import Checkpoint, Version
    from chronolet.history.entries import ArchiveReader, Late
    from chronolet.history.probe_outcomes import Sources
    from chronolet.history.state import ReadableKind
    from chronolet.kernel.kind import Kind
    from chronolet.kernel.storage.redis.sites import RedisSites
    from chronolet.kernel.storage.store import Store
    from chronolet.node.settings.settings import Settings
    from chronolet.ports.kube_sinks import Kept
    from chronolet.ports.machine.cgroups import Cgroups
    from chronolet.ports.pods.pod_logs import PodLogs
    from chronolet.ports.pods.secrets import Secrets
    from chronolet.ports.runtime.images import Images
    from chronolet.ports.runtime.runtime import Runtime
    from chronolet.ports.spans import Span
    from chronolet_schemas.envelope import Entry, Position
    from chronolet_schemas.prober import RawResult

ANSWER_SECONDS = 10.0
"""How long Docker may take to begin its response. Afterwards, a followed stream may stay silent indefinitely."""


def wall_clock() -> int:
    """Return the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def redis_store(settings: Settings) -> Store:
    """Return the node's log in Redis. Raises SettingsError if the URL is invalid."""
    from chronolet.kernel.storage.redis.store import RedisStore  # noqa: PLC0415 - `--help` needs no Redis client

    try:
        return RedisStore(settings.redis_url, settings.node)
    except ValueError as error:
        raise SettingsError(f"--redis: {error}") from error


def redis_sites(settings: Settings) -> RedisSites:
    """Return the record of the node's site in Redis. Raises SettingsError if the URL is invalid."""
    from chronolet.kernel.storage.redis.sites import RedisSites  # noqa: PLC0415 - few commands need it

    try:
        return RedisSites(settings.redis_url, settings.node)
    except ValueError as error:
        raise SettingsError(f"--redis: {error}") from error


def archive_files(settings: Settings, store: Store) -> ArchiveReader:
    """Return a reader of the archived part of the node's log."""
    return _Archive(settings, store)


class _Archive:
    """Loads the reader of archive files only when it is needed: most commands never read an archive."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store

    def entries(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> Iterator[Entry]:
        """See `ArchiveReader`."""
        return self._node_archive().entries(after, upto, wanted)

    def numbered(self, number: int) -> Entry | None:
        """See `ArchiveReader`."""
        return self._node_archive().numbered(number)

    def last_until(self, milliseconds: int, after: Position, upto: Position) -> Late:
        """See `ArchiveReader`."""
        return self._node_archive().last_until(milliseconds, after, upto)

    def checkpoints(self, upto: Position, kinds: Mapping[str, Version]) -> Mapping[str, Checkpoint]:
        """See `ArchiveReader`."""
        return self._node_archive().checkpoints(upto, kinds)

    def _node_archive(self) -> NodeArchive:
        return node_archive(self._settings, self._store)


def node_archive(settings: Settings, store: Store) -> NodeArchive:
    """Return the archives of the node, for reading and repairing."""
    from chronolet.adapters.archive.places import place  # noqa: PLC0415 - see _Archive
    from chronolet.history.archives import NodeArchive  # noqa: PLC0415 - see _Archive

    return NodeArchive(place(settings.archive, settings.root_dir, "repair"), settings.node, store)


def docker_runtime(settings: Settings, *, timeout_seconds: float = ANSWER_SECONDS) -> Runtime:
    """Return the node's Docker Engine."""
    from chronolet.adapters.docker_runtime import DockerRuntime  # noqa: PLC0415 - docker is slow to import

    return DockerRuntime(settings.docker, timeout_seconds=timeout_seconds)


def kept_events(settings: Settings) -> Kept:
    """Return a reader of the KubeEvents in the node's Redis."""
    from chronolet.adapters.kube_sinks.stream import StreamReader  # noqa: PLC0415 - most commands need none

    return StreamReader(settings.redis_url, settings.node)


def docker_images(settings: Settings, *, timeout_seconds: float = ANSWER_SECONDS) -> Images:
    """Return the images of the node's Docker Engine."""
    from chronolet.adapters.docker_runtime.images import DockerImages  # noqa: PLC0415 - docker is slow to import

    return DockerImages(settings.docker, timeout_seconds=timeout_seconds)


def pod_logs(folder: Path) -> PodLogs:
    """Return the pod logs below this folder."""
    from chronolet.adapters.state_folder.pod_logs import PodLogFolders  # noqa: PLC0415 - one command needs it

    return PodLogFolders(folder)


def kept_secrets(settings: Settings) -> Secrets:
    """Return the node's Secrets, whose contents are in its state folder."""
    from chronolet.adapters.state_folder.secrets import SecretFiles  # noqa: PLC0415 - most commands need none

    return SecretFiles(settings.root_dir, settings.node)


def probe_results(settings: Settings) -> Iterator[RawResult]:
    """Yield the node's raw probe results, newest first."""
    from chronolet.adapters.probes.results.reader import kept_results  # noqa: PLC0415 - only `describe` shows them

    yield from kept_results(settings.redis_url, settings.node)


def recorded_probes(settings: Settings, store: Store) -> Sources:
    """Return where the recorded outcomes of the node's probes are."""
    from chronolet.adapters.probes.results.segment_files import ArchivedSegments  # noqa: PLC0415 - one command needs it
    from chronolet.adapters.probes.results.segment_stream import RedisSegments  # noqa: PLC0415
    from chronolet.history.probe_outcomes import Sources  # noqa: PLC0415

    files = ArchivedSegments(node_archive(settings, store).current())
    return Sources(files, RedisSegments(settings.redis_url, settings.node), lambda: probe_results(settings))


def recent_spans(process: str, pod: str) -> Sequence[Span] | None:
    """Fetch the most recent calls for a pod from a running process of the node; None if it has no HTTP server or
    does not reply.

    `process` is the entry of the process in the list of live processes.
    """
    from chronolet.adapters.http.recent_spans import asked as fetched  # noqa: PLC0415 - one command needs it

    return fetched(process.partition(" ")[2], pod)


def linux_cgroups(settings: Settings) -> Cgroups:
    """Return the cgroups of this machine."""
    from chronolet.adapters.cgroups import LinuxCgroups  # noqa: PLC0415 - most commands need none

    return LinuxCgroups(settings.root_dir / "cgroups")


def readable_kinds(names: Sequence[str]) -> tuple[ReadableKind, ...]:
    """Return these kinds, for reading their states.

    Most commands read only the states of pods, so for `pod` only the code that folds states is imported.
    """
    return tuple(_pods() if name == "pod" else _actor(name) for name in names)


def pure_kinds(names: Sequence[str]) -> tuple[Kind[Any], ...]:
    """Return these kinds with their deciders but without effects."""
    return tuple(map(_actor, names))


def _pods() -> ReadableKind:
    from chronolet.history.state import Fold, StatesOnly  # noqa: PLC0415 - not every command reads states
    from chronolet.pod.evolve.pod import evolve  # noqa: PLC0415
    from chronolet.pod.state import FORMAT, SHARDS, State  # noqa: PLC0415

    return StatesOnly("pod", SHARDS, State, FORMAT, Fold(State(), evolve))


def _actor(name: str) -> Kind[Any]:
    kind: Kind[Any] = importlib.import_module(f"chronolet.{name}.actor").kind()
    return kind


def downloaded(url: str, most: int) -> bytes:
    """Return the first `most` bytes of a URL's content. Raises Failure if it cannot be downloaded."""
    from chronolet.cli.apply.downloads import download  # noqa: PLC0415 - an HTTP client is slow to load

    return download(url, most)


class Timing(NamedTuple):
    """Time limits of commands."""

    patience_seconds: float = 5.0
    """How long a command that sends something keeps trying to open the log, because the agent may be starting."""
    ownerless_seconds: float = 5.0
    """How long a shard may have no live owner before a command that waits for it fails."""
    completion_seconds: float = 1.0
    """The longest time that a shell completion may take."""


class Services(NamedTuple):
    """Factories for a command's dependencies."""

    store: Callable[[Settings], Store] = redis_store
    sites: Callable[[Settings], RedisSites] = redis_sites
    archive: Callable[[Settings, Store], ArchiveReader] = archive_files
    runtime: Callable[[Settings], Runtime] = docker_runtime
    images: Callable[[Settings], Images] = docker_images
    logs: Callable[[Path], PodLogs] = pod_logs
    secrets: Callable[[Settings], Secrets] = kept_secrets
    kube_events: Callable[[Settings], Kept] = kept_events
    results: Callable[[Settings], Iterator[RawResult]] = probe_results
    probe_sources: Callable[[Settings, Store], Sources] = recorded_probes
    kinds: Callable[[Sequence[str]], Sequence[ReadableKind]] = readable_kinds
    actors: Callable[[Sequence[str]], Sequence[Kind[Any]]] = pure_kinds
    spans: Callable[[str, str], Sequence[Span] | None] = recent_spans
    cgroups: Callable[[Settings], Cgroups] = linux_cgroups
    now: Callable[[], int] = wall_clock
    sleep: Callable[[float], None] = time.sleep
    download: Callable[[str, int], bytes] = downloaded
    timing: Timing = Timing()
    past: bool = False
    """Whether the log is a record of the past, such as a bundle: nothing of the node is live, and the log's end is the
    present.
    """
    redacted: bool = False
    """Whether secrets were taken out of the log, so that a decision may differ only because of that."""


def services_of_command() -> Services:
    """Return the services of the current command."""
    return click.get_current_context().find_object(Services) or Services()
