"""The node's pages in the kubelet's formats: /pods, /runningpods, /stats/summary, /configz; and, for Prometheus, states
and usage.

Input: the log, the runtime, usage samples, the settings. Output: JSON and Prometheus text. These pages never wait for
actors, and actors never wait for them: pods are folded from the log, usage is the last sample, and running containers
are listed from the runtime. Next: `server`. Source: pkg/kubelet/server/server.go.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol, TypeVar

import msgspec

from chronolet.history.entries import ArchiveReader
from chronolet.history.state import Latest
from chronolet.kernel.kind import Kind
from chronolet.kernel.storage.store import HistoryMissing, Store, StoreBroken, StoreUnreachable
from chronolet.node.http.api_node import facts
from chronolet.node.http.api_pods import PodObjects
from chronolet.node.http.fresh import BusyError, Cached, Rendered
from chronolet.node.http.server import Query, Response, Show
from chronolet.node.metrics.probes import CONTENT_TYPE as METRICS
from chronolet.node.settings import table as known
from chronolet.node.settings.plain import plain_value
from chronolet.node.settings.table import Settings
from chronolet.node.state_page.page import StatePage
from chronolet.node.stats.cadvisor_page import cadvisor_metrics
from chronolet.node.stats.resource_page import resource_metrics
from chronolet.node.stats.samples import Snapshot
from chronolet.node.stats.summary import summary
from chronolet.pleg.health import go_duration
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal, Runtime
from chronolet.rules.names.names import SANDBOX

Object = dict[str, Any]
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

JSON = "application/json"
PODS_SECONDS = 1.0
"""Maximum age of a cached page."""
PATIENCE_SECONDS = 5.0


def pod_pages(settings: Settings, store: Store, archive: ArchiveReader, *kinds: Kind[Any]) -> dict[str, Show]:
    """Return the pages /pods, a v1 PodList with statuses, and /metrics/state. `kinds`: `pod`, `devices`, `qos` and
    `pleg`. Both pages share one set of folded states, which only one of them may read at a time.
    """
    latest, objects, state = Latest(store, archive, kinds), PodObjects(settings.node), StatePage(settings.node)
    folding = threading.Lock()

    def pods() -> Object:
        with folding:
            moment = latest.moment()
            return _list(objects.of(moment), str(moment.position))

    def states() -> bytes:
        with folding:
            moment = latest.moment()
            return state.of(moment, facts(moment, store, time.time_ns() // 1_000_000))

    return {
        "/pods": _shown(Cached(pods, PODS_SECONDS, PATIENCE_SECONDS)),
        "/metrics/state": _shown(Cached(states, PODS_SECONDS, PATIENCE_SECONDS), bytes, METRICS),
    }


def runtime_pages(settings: Settings, runtime: Runtime) -> dict[str, Show]:
    """Return the page /runningpods: the pods that have running containers, as listed by the runtime."""
    ours = labels.of_node(settings.node)

    def running() -> Object:
        return _list(_running(runtime.list(ours)))

    return {"/runningpods": _shown(Cached(running, PODS_SECONDS, PATIENCE_SECONDS))}


def usage_pages(settings: Settings, latest: Callable[[], Snapshot]) -> dict[str, Show]:
    """Return the pages /stats/summary, /metrics/resource and /metrics/cadvisor: each shows the last sample, rendered
    once.
    """
    pages: dict[str, tuple[Callable[[Snapshot], bytes], str]] = {
        "/stats/summary": (lambda one: msgspec.json.encode(summary(settings.node, one)), JSON),
        "/metrics/resource": (lambda one: resource_metrics(one).encode(), METRICS),
        "/metrics/cadvisor": (cadvisor_metrics, METRICS),
    }
    return {path: _shown(Rendered(latest, write), bytes, kind) for path, (write, kind) in pages.items()}


def configz(settings: Settings) -> Show:
    """Return the page /configz: the settings by KubeletConfiguration field, or by flag name if they have no field."""
    shown: Object = {"kubeletconfig": {}, "chronolet": {"node": settings.node}}
    for one in known.SETTINGS:
        value = plain_value(settings, one.name)
        if one.metavar == "DURATION" and isinstance(value, int):
            value = go_duration(value)
        if one.field:
            _put(shown["kubeletconfig"], one.field.split("."), value)
        else:
            shown["chronolet"][one.flag.removeprefix("--")] = value
    body = msgspec.json.encode(shown)
    return lambda _: Response(200, body, JSON)


def _put(where: Object, path: Sequence[str], value: object) -> None:
    for name in path[:-1]:
        where = where.setdefault(name, {})
    where[path[-1]] = value


class _Page(Protocol[T_co]):
    """A source of page content."""

    def get(self) -> T_co: ...


def _shown(page: _Page[T], written: Callable[[T], bytes] = msgspec.json.encode, kind: str = JSON) -> Show:
    def show(_: Query) -> Response:
        try:
            return Response(200, written(page.get()), kind)
        except BusyError:
            return Response(503, b"this page is still being generated for another request: retry\n")
        except (Refusal, StoreUnreachable, StoreBroken, HistoryMissing, OSError) as error:
            return Response(503, f"{error}\n".encode())

    return show


def _list(items: Sequence[Object], version: str = "") -> Object:
    return {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": version} if version else {},
        "items": items,
    }


def _running(found: Sequence[ContainerState]) -> list[Object]:
    """Return the running containers as pods with only names, uids and images. Source: kubecontainer.Pod.ToAPIPod."""
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
