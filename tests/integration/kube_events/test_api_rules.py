"""The fake API server refuses and records every kind of invalid request."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.kube_events.api_server import LARGEST_REQUEST, ApiServer
from tests.support.kube_events.faulty_server import served
from tests.support.scratch import HANG_SECONDS

EVENTS = "/api/v1/namespaces/shop/events"
EVENT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "web.1", "namespace": "shop", "annotations": {"chronolet/position": "1-1"}},
    "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web", "uid": "u1", "apiVersion": "v1"},
    "reason": "Started",
    "message": "Container started",
    "source": {"component": "chronolet", "host": "node-1"},
    "firstTimestamp": "2026-11-21T00:00:00Z",
    "lastTimestamp": "2026-11-21T00:00:00Z",
    "count": 1,
    "type": "Normal",
    "eventTime": None,
    "reportingComponent": "chronolet",
    "reportingInstance": "node-1",
}
MORE = {"count": 2, "lastTimestamp": "2026-11-21T00:00:09Z"}
CREATE = {"Content-Type": "application/json", "Accept": "application/json"}
PATCH = {**CREATE, "Content-Type": "application/strategic-merge-patch+json"}


@pytest.fixture
def api() -> Iterator[ApiServer]:
    server = ApiServer(namespaces={"shop", "default"})
    with served(server):
        yield server


def requested(
    api: ApiServer, method: str, path: str, headers: dict[str, str], body: bytes
) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=HANG_SECONDS)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def create(api: ApiServer, event: Any = EVENT, path: str = EVENTS, **headers: str) -> int:
    return requested(api, "POST", path, {**CREATE, **headers}, json.dumps(event).encode())[0]


def patch(api: ApiServer, changes: Any, name: str = "web.1", **headers: str) -> int:
    return requested(api, "PATCH", f"{EVENTS}/{name}", {**PATCH, **headers}, json.dumps(changes).encode())[0]


def test_requests_of_a_kubelet_are_accepted(api: ApiServer) -> None:
    assert (create(api), create(api)) == (201, 409)
    assert (patch(api, MORE), patch(api, MORE), patch(api, MORE, name="web.2")) == (200, 200, 404)
    assert create(api, {**EVENT, "metadata": {"name": "a", "namespace": "gone"}}) == 422
    assert api.wrong == ["metadata.namespace: 'gone' in 'shop'"]
    assert [(event["count"], event["message"]) for event in api.events.values()] == [(2, "Container started")]


def test_an_event_of_a_removed_namespace_is_not_found(api: ApiServer) -> None:
    event = json.loads(json.dumps(EVENT).replace('"shop"', '"gone"'))
    assert create(api, event, EVENTS.replace("shop", "gone")) == 404
    assert (api.wrong, api.events) == ([], {})


@pytest.mark.parametrize(
    ("status", "changed"),
    [
        (422, {"metadata": {**EVENT["metadata"], "resourceVersion": "7"}}),
        (422, {"metadata": {**EVENT["metadata"], "uid": "mine"}}),
        (422, {"metadata": {**EVENT["metadata"], "name": "Web_1"}}),
        (422, {"metadata": {**EVENT["metadata"], "name": f"{'a' * 253}.1"}}),
        (422, {"metadata": {**EVENT["metadata"], "namespace": "default"}}),
        (422, {"metadata": {**EVENT["metadata"], "annotations": {"no key": "x"}}}),
        (422, {"metadata": {**EVENT["metadata"], "annotations": {"position": 1}}}),
        (422, {"involvedObject": {**EVENT["involvedObject"], "namespace": "default"}}),
        (422, {"involvedObject": {**EVENT["involvedObject"], "name": ""}}),
        (422, {"involvedObject": {**EVENT["involvedObject"], "field_path": "x"}}),
        (422, {"series": {"count": 1}}),
        (422, {"count": 0}),
        (422, {"count": "1"}),
        (422, {"count": 1.0}),
        (422, {"type": "Error"}),
        (422, {"reason": ""}),
        (422, {"source": {"host": "node-1"}}),
        (422, {"source": "chronolet"}),
        (422, {"lastTimestamp": "2026-11-21 00:00:00"}),
        (422, {"lastTimestamp": None}),
        (422, {"eventTime": "2026-11-21T00:00:00Z"}),
        (422, {"kind": "Pod"}),
        (413, {"message": "x" * LARGEST_REQUEST}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_invalid_event_is_refused(api: ApiServer, status: int, changed: dict[str, Any]) -> None:
    assert create(api, {**EVENT, **changed}) == status
    assert len(api.wrong) == 1
    assert api.events == {}


@pytest.mark.parametrize(
    ("status", "changes"),
    [(422, {}), (422, {"reason": "x"}), (422, {"count": 1}), (422, {"count": "3"}), (422, {"metadata": {"name": "x"}})],
    ids=str,
)
def test_an_invalid_patch_is_refused(api: ApiServer, status: int, changes: dict[str, Any]) -> None:
    assert (create(api), patch(api, MORE)) == (201, 200)
    assert patch(api, changes) == status
    assert len(api.wrong) == 1
    assert api.events["shop", "web.1"]["count"] == 2


def test_an_invalid_request_is_refused(api: ApiServer) -> None:
    assert create(api) == 201
    assert create(api, **{"Content-Type": "text/plain"}) == 415
    assert create(api, **{"Content-Type": PATCH["Content-Type"]}) == 415
    assert patch(api, MORE, **{"Content-Type": "application/json"}) == 415
    assert create(api, Accept="text/html") == 406
    assert create(api, path="/api/v1/events") == 405
    assert create(api, path=f"{EVENTS}/web.1") == 405
    assert requested(api, "POST", EVENTS, CREATE, b"{")[0] == 400
    assert requested(api, "POST", EVENTS, CREATE, b"[]")[0] == 400
    assert len(api.wrong) == 8
    assert api.events["shop", "web.1"]["count"] == 1
