"""A fake Kubernetes API server: creates and patches Event objects, and checks every request as a real one would.

Input: requests over real HTTP, and the faults of `faulty_server`. Output: the objects, the calls, and their errors.

Source: pkg/apis/core/validation/events.go, the API machinery's metadata rules and its create and patch handlers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from tests.support.kube_events.faulty_server import Server

LARGEST_REQUEST = 3 << 20
_PATH = re.compile(r"/api/v1/namespaces/([^/]+)/events(?:/([^/]+))?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_TYPES = {"POST": "application/json", "PATCH": "application/strategic-merge-patch+json"}
_PATCHED = {"count", "lastTimestamp", "message"}
"""Fields that the kubelet's patch of a repeated event may change."""

Shape = Mapping[str, Any]
_SHAPE: Shape = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str, "namespace": str, "annotations": {"*": str}},
    "involvedObject": {
        **dict.fromkeys(("kind", "namespace", "name", "uid", "apiVersion", "fieldPath"), str),
    },
    "reason": str,
    "message": str,
    "source": {"component": str, "host": str},
    "firstTimestamp": str,
    "lastTimestamp": str,
    "count": int,
    "type": str,
    "eventTime": type(None),
    "reportingComponent": str,
    "reportingInstance": str,
}
"""The fields of the Event objects that the kubelet sends. They have no `series`, which belongs to events with an
`eventTime`.
"""


class Refused(Exception):  # noqa: N818 - a response, not an error
    """A response that is a Status: code, reason, and a message that names the error."""

    def __init__(self, code: int, reason: str, message: str = "") -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message


class Call(NamedTuple):
    """A call that got a response."""

    method: str
    name: str
    status: int


class ApiServer(Server):
    """A fake API server that accepts only Event objects. `events`: these objects by namespace and name. `wrong`: errors
    of requests that no kubelet would send, which are refused. `namespaces`: the existing namespaces, or None if every
    namespace exists.
    """

    def __init__(self, token: str = "", namespaces: set[str] | None = None) -> None:
        super().__init__()
        self._token = token
        self._namespaces = namespaces
        self._version = 0
        self.events: dict[tuple[str, str], dict[str, Any]] = {}
        self.calls: list[Call] = []
        self.wrong: list[str] = []

    def respond(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        with self.lock:
            method, (namespace, name) = handler.command, _place(handler.path)
            try:
                self._admit(handler, body)
                sent = _decoded(body)
                name = name or str(sent.get("metadata", {}).get("name", ""))
                status, answer = self._done(method, namespace, name, sent)
            except Refused as refusal:
                if refusal.code not in (401, 404, 409):
                    self.wrong.append(refusal.message)
                status, answer = refusal.code, _status(refusal)
            self.calls.append(Call(method, name, status))
        return status, answer

    def _admit(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        if self._token and handler.headers.get("Authorization") != f"Bearer {self._token}":
            raise Refused(401, "Unauthorized")
        namespace, name = _place(handler.path)
        if not namespace or (handler.command == "POST") == bool(name):
            raise Refused(405, "MethodNotAllowed", f"{handler.command} {handler.path}")
        if handler.headers.get("Content-Type") != _TYPES[handler.command]:
            raise Refused(415, "UnsupportedMediaType", f"{handler.command} as {handler.headers.get('Content-Type')}")
        if "application/json" not in handler.headers.get("Accept", ""):
            raise Refused(406, "NotAcceptable", f"Accept: {handler.headers.get('Accept')}")
        if len(body) > LARGEST_REQUEST:
            raise Refused(413, "RequestEntityTooLarge", f"{len(body)} bytes")

    def _done(self, method: str, namespace: str, name: str, sent: dict[str, Any]) -> tuple[int, Any]:
        return self._create(namespace, sent) if method == "POST" else self._patch(namespace, name, sent)

    def _create(self, namespace: str, event: dict[str, Any]) -> tuple[int, Any]:
        problems = list(_problems(namespace, event))
        if problems:
            raise Refused(422, "Invalid", problems[0])
        if self._namespaces is not None and namespace not in self._namespaces:
            raise Refused(404, "NotFound", f'namespaces "{namespace}" not found')
        key = (namespace, event["metadata"]["name"])
        if key in self.events:
            raise Refused(409, "AlreadyExists", f'events "{key[1]}" already exists')
        self._version += 1
        made = {"uid": f"uid-{self._version}", "resourceVersion": str(self._version), "creationTimestamp": "now"}
        self.events[key] = {**event, "metadata": {**event["metadata"], **made}}
        return 201, self.events[key]

    def _patch(self, namespace: str, name: str, patch: dict[str, Any]) -> tuple[int, Any]:
        if not patch or not patch.keys() <= _PATCHED:
            raise Refused(422, "Invalid", f"patch of {sorted(patch)}")
        before = self.events.get((namespace, name))
        if before is None:
            raise Refused(404, "NotFound", f'events "{name}" not found')
        event = {**before, **patch}
        bare = {key: before["metadata"][key] for key in before["metadata"] if key in _SHAPE["metadata"]}
        problems = list(_problems(namespace, {**event, "metadata": bare}))
        if not problems and event["count"] < before["count"]:
            problems.append(f"{name}: {before['count']} events become {event['count']}")
        if problems:
            raise Refused(422, "Invalid", problems[0])
        self._version += 1
        self.events[namespace, name] = {
            **event,
            "metadata": {**before["metadata"], "resourceVersion": str(self._version)},
        }
        return 200, self.events[namespace, name]


def _place(path: str) -> tuple[str, str]:
    """Return the namespace and the event's name from a path. The name is empty in a path for creation; both are empty
    in any other path.
    """
    found = _PATH.fullmatch(path)
    return (found[1], found[2] or "") if found else ("", "")


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError as error:
        raise Refused(400, "BadRequest", f"the body: {error}") from error
    if not isinstance(found, dict):
        raise Refused(400, "BadRequest", f"the body is {found!r}")
    return found


def _problems(namespace: str, event: dict[str, Any]) -> Iterator[str]:
    yield from _misshapen("", event, _SHAPE) or _meaningless(namespace, event)


def _misshapen(path: str, found: Any, shape: Any) -> list[str]:
    """Return the errors of a strict decoder: fields of the wrong type, and unknown fields."""
    if not isinstance(shape, Mapping):
        good = isinstance(found, shape) and not (shape is int and isinstance(found, bool))
        return [] if good else [f"{path}: {found!r} is not a {shape.__name__}"]
    if not isinstance(found, dict):
        return [f"{path}: {found!r} is not an object"]
    problems = []
    for name, value in found.items():
        inner = shape.get(name, shape.get("*"))
        where = f"{path}.{name}" if path else name
        problems += (
            [f"{where}: unknown field, or not set by clients"] if inner is None else _misshapen(where, value, inner)
        )
    return problems


def _meaningless(namespace: str, event: dict[str, Any]) -> Iterator[str]:
    if (event.get("apiVersion"), event.get("kind")) != ("v1", "Event"):
        yield f"apiVersion {event.get('apiVersion')!r}, kind {event.get('kind')!r}"
    for field in ("firstTimestamp", "lastTimestamp"):
        if not _TIME.fullmatch(event.get(field, "")):
            yield f"{field}: {event.get(field)!r}"
    if event.get("type") not in ("Normal", "Warning") or not 1 <= event.get("count", 0) < 2**31:
        yield f"type {event.get('type')!r}, count {event.get('count')!r}"
    if not event.get("reason") or not event.get("source", {}).get("component"):
        yield "reason or source.component: empty"
    yield from _misplaced(namespace, event.get("metadata", {}), event.get("involvedObject", {}))


def _misplaced(namespace: str, metadata: dict[str, Any], involved: dict[str, Any]) -> Iterator[str]:
    name = metadata.get("name", "")
    if not _NAME.fullmatch(name) or len(name) > 253:
        yield f"metadata.name: {name!r}"
    if metadata.get("namespace") != namespace:
        yield f"metadata.namespace: {metadata.get('namespace')!r} in {namespace!r}"
    # Events about objects without a namespace are in `default`.
    if involved.get("namespace", "default") != namespace:
        yield f"involvedObject.namespace: {involved.get('namespace')!r} in {namespace!r}"
    if not involved.get("kind") or not involved.get("name"):
        yield "involvedObject: kind or name is empty"
    yield from (f"annotation {key!r}" for key in metadata.get("annotations", {}) if not _KEY.fullmatch(key))


def _status(refusal: Refused) -> dict[str, Any]:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": refusal.code}
    return {**status, "reason": refusal.reason, "message": refusal.message}
