"""The node's pages with the Kubernetes types: /pods, /runningpods, /stats/summary, /configz.

Comes in: the log, the runtime, the settings. Goes out: JSON. Nothing here waits on an actor, and no actor waits on it:
pods are folded from the log, usage is read from the kernel, the rest is asked of the runtime, and not for long.
Next: `http`. Source: pkg/kubelet/server/server.go.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from chronolet.adapters import machine
from chronolet.adapters.cgroup_usage import CgroupUsage
from chronolet.history.entries import ArchiveReader
from chronolet.history.state import state_at
from chronolet.kernel.kind import Kind
from chronolet.kernel.redis_url import where
from chronolet.kernel.store import HistoryMissing, Store, StoreBroken, StoreUnreachable
from chronolet.node import settings as known
from chronolet.node.api_pods import api_pods
from chronolet.node.fresh import BusyError, Fresh
from chronolet.node.http import Answer, Query, Show
from chronolet.node.probe_figures import CONTENT_TYPE as METRICS
from chronolet.node.resource_page import resource_metrics
from chronolet.node.setting import Setting
from chronolet.node.settings import Settings
from chronolet.node.summary import Rates, Sample, summary, without_limit_of
from chronolet.pleg.health import go_duration
from chronolet.ports import labels
from chronolet.ports.runtime import ContainerState, Refusal, Runtime
from chronolet.rules.names import SANDBOX

Object = dict[str, Any]

JSON = "application/json"
PODS_SECONDS, USAGE_SECONDS = 1.0, 5.0
"""How old a page may be."""
PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 10.0
_AT_ONCE = 4


def pod_pages(settings: Settings, store: Store, archive: ArchiveReader, *kinds: Kind[Any]) -> dict[str, Show]:
    """/pods."""

    def pods() -> Object:
        moment = state_at(store, archive, kinds)
        return _list(api_pods(moment, settings.node), str(moment.position))

    return {"/pods": _shown(Fresh(pods, PODS_SECONDS, PATIENCE_SECONDS))}


def runtime_pages(settings: Settings, runtime: Runtime) -> dict[str, Show]:
    """/runningpods, /stats/summary and /metrics/resource."""
    rates, ours, used = Rates(), labels.of_node(settings.node), CgroupUsage(runtime)

    def usage() -> Object:
        now = machine.look(_existing(settings.root_dir))
        samples = without_limit_of(now, _samples(used, runtime.list(ours)))
        return summary(settings.node, now, samples, rates)

    def running() -> Object:
        return _list(_running(runtime.list(ours)))

    used_now = Fresh(usage, USAGE_SECONDS, PATIENCE_SECONDS)
    return {
        "/runningpods": _shown(Fresh(running, PODS_SECONDS, PATIENCE_SECONDS)),
        "/stats/summary": _shown(used_now),
        "/metrics/resource": _shown(used_now, lambda found: resource_metrics(found).encode(), METRICS),
    }


_SERVERS = ("event_webhook_url", "event_api_server")
"""Settings of which only the server is shown: the rest of such a URL may be a secret."""


def configz(settings: Settings) -> Show:
    """/configz: the settings under their names in a KubeletConfiguration, and those that it has no name for."""
    shown: Object = {"kubeletconfig": {}, "chronolet": {"node": settings.node}}
    for one in known.SETTINGS:
        value = getattr(settings, one.name)
        if one.field:
            _put(shown["kubeletconfig"], one.field.split("."), _said(one, value))
        else:
            shown["chronolet"][one.flag.removeprefix("--")] = _said(one, value)
    body = msgspec.json.encode(shown)
    return lambda _: Answer(200, body, JSON)


def _put(where: Object, path: Sequence[str], value: object) -> None:
    for name in path[:-1]:
        where = where.setdefault(name, {})
    where[path[-1]] = value


def _said(one: Setting, value: object) -> object:
    if one.metavar == "DURATION" and isinstance(value, int):
        return go_duration(value)
    if one.name == "redis" and isinstance(value, str):
        return where(value) if value else ""  # never its password, nor its options
    if one.name == "docker" and isinstance(value, str):
        scheme, mark, rest = value.partition("://")
        return f"{scheme}{mark}{rest.rpartition('@')[2]}"
    if one.name in _SERVERS and isinstance(value, str) and value:
        parts = urlsplit(value)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"  # the rest may be as secret
    if isinstance(value, tuple):
        return [str(part) for part in value]
    return str(value) if isinstance(value, Path) else value


def _shown(page: Fresh[Object], written: Callable[[Object], bytes] = msgspec.json.encode, kind: str = JSON) -> Show:
    def show(_: Query) -> Answer:
        try:
            return Answer(200, written(page.get()), kind)
        except BusyError:
            return Answer(503, b"still being made for somebody else: ask again\n")
        except (Refusal, StoreUnreachable, StoreBroken, HistoryMissing, OSError) as error:
            return Answer(503, f"{error}\n".encode())

    return show


def _list(items: Sequence[Object], version: str = "") -> Object:
    return {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": version} if version else {},
        "items": items,
    }


def _running(found: Sequence[ContainerState]) -> list[Object]:
    """What the runtime runs, as pods: names, uids and images, no more. Source: kubecontainer.Pod.ToAPIPod."""
    running = sorted((one for one in found if one.state == "running"), key=lambda one: (*_pod_of(one.labels), one.name))
    return [
        {
            "metadata": {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": None},
            "spec": {
                "containers": [
                    {"name": one.labels.get(labels.CONTAINER_NAME, ""), "image": one.image, "resources": {}}
                    for one in containers
                    if one.labels.get(labels.CONTAINER_NAME, "") != SANDBOX
                ]
            },
            "status": {},
        }
        for (namespace, name, uid), containers in groupby(running, lambda one: _pod_of(one.labels))
    ]


def _pod_of(of: Mapping[str, str]) -> tuple[str, str, str]:
    return of.get(labels.POD_NAMESPACE, ""), of.get(labels.POD_NAME, ""), of.get(labels.POD_UID, "")


def _samples(used: CgroupUsage, found: Sequence[ContainerState]) -> list[Sample]:
    """Of all that run; who does not answer in time is left out."""
    deadline = time.monotonic() + _LOOK_SECONDS
    running = [one for one in found if one.state == "running"]
    used.keep({one.id for one in running})
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="stats") as workers:
        looked = [one for one in workers.map(_look(used, deadline), running) if one is not None]
    # Last: no pod has used less than its containers together.
    return [one._replace(around=used.around(one.container.id)) if one.name == SANDBOX else one for one in looked]


def _look(used: CgroupUsage, deadline: float) -> Callable[[ContainerState], Sample | None]:
    def look(container: ContainerState) -> Sample | None:
        if time.monotonic() > deadline:
            return None
        try:
            usage = used.of(container.id)
        except Refusal:
            return None
        return Sample(container, usage) if usage is not None else None

    return look


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there already."""
    return next(path for path in (folder, *folder.parents) if path.exists())
