"""Deliver KubeEvents to a Kubernetes API server, as the kubelet's recorder does.

Input: posts. Output: `create` for a new event, `patch` for a repeated one; if the server answers a `patch` with 404,
`create` immediately. Source: client-go's tools/record/event.go (recordEvent).

A Status in the response is final, even with a 500, unless the response says when to retry. A call is retried if there
is no response, or if the response contains neither the object nor a Status.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from chronolet.adapters.kube_sinks.calls import Caller, HttpResponse, Unreachable
from chronolet.ports.kube_sinks import Outcome, api_event
from chronolet.rules.names.kube_event import event_namespace
from chronolet_schemas.kube_events import Post

_PATCH = "application/strategic-merge-patch+json"
_SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp")
_PATCHED = ("count", "lastTimestamp", "message")


class Pace:
    """Rate limit: bursts of up to `burst` calls, `per_second` in the long run; `per_second` 0 means no limit."""

    def __init__(self, per_second: int, burst: int) -> None:
        self._seconds = 1 / per_second if per_second else 0.0
        self._burst = burst
        self._next = 0.0
        """Monotonic time at which the next call would be due if calls were evenly spaced."""

    def wait(self) -> None:
        """Sleep until the next call is allowed. Not thread-safe."""
        now = time.monotonic()
        self._next = max(self._next, now - self._burst * self._seconds) + self._seconds
        time.sleep(max(0.0, self._next - now))


class KubernetesSink:
    """Implements `ports.kube_sinks.Sink` for an API server. `token_file` contains a bearer token and is read for each
    call, because such tokens are renewed.
    """

    batch_size = 1

    def __init__(self, call: Caller, node: str, token_file: str = "", pace: Pace | None = None) -> None:
        self._call = call
        self._node = node
        self._token_file = token_file
        self._pace = pace or Pace(0, 0)

    def deliver(self, posts: Sequence[Post]) -> Outcome:
        (post,) = posts
        self._pace.wait()
        try:
            answer = self._patch(post) if post.count > 1 else self._create(post)
            if post.count > 1 and answer.status == HTTPStatus.NOT_FOUND:
                answer = self._create(post)
        except ValueError as error:
            return Outcome(refused=((post.name, f"cannot be put into a request: {error}"),))
        except (Unreachable, OSError) as error:
            return Outcome(failure=str(error))
        return _read(post, answer)

    def _create(self, post: Post) -> HttpResponse:
        event = api_event(post, self._node)
        event.pop("series", None)  # the kubelet's events have no series: only events with an eventTime have one
        for name in _SERVERS_OWN:
            del event["metadata"][name]
        return self._call("POST", _path(post), self._headers("application/json"), msgspec.json.encode(event))

    def _patch(self, post: Post) -> HttpResponse:
        event = api_event(post, self._node)
        body = msgspec.json.encode({name: event[name] for name in _PATCHED})
        return self._call("PATCH", f"{_path(post)}/{quote(post.name, safe='')}", self._headers(_PATCH), body)

    def _headers(self, content: str) -> Mapping[str, str]:
        headers = {"Content-Type": content, "Accept": "application/json", "User-Agent": "chronolet"}
        if self._token_file:
            headers["Authorization"] = f"Bearer {Path(self._token_file).read_text().strip()}"
        return headers


def _path(post: Post) -> str:
    return f"/api/v1/namespaces/{quote(event_namespace(post.namespace), safe='')}/events"


def _read(post: Post, answer: HttpResponse) -> Outcome:
    found = _object(answer.body)
    if 200 <= answer.status < 300:  # noqa: PLR2004 - the success statuses
        if found.get("kind") == "Event":
            return Outcome(delivered=1)
        return Outcome(failure=f"answered {answer.status} with {found.get('kind') or 'no object'}, expected an Event")
    if found.get("kind") != "Status" or "retry-after" in answer.headers:
        return Outcome(failure=f"answered {answer.status}")
    if (answer.status, found.get("reason")) == (HTTPStatus.CONFLICT, "AlreadyExists"):
        return Outcome(known=1)  # names are derived from log positions, so the response to an earlier attempt was lost
    return Outcome(refused=((post.name, f"{answer.status} {found.get('reason', '')}: {found.get('message', '')}"),))


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}
