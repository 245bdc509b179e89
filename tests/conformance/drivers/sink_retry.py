"""Runs the delivery cases of events.json. They drive the kind `kube_events`, as the node builds it, through real
kernel steps and a fake connection.

Sinks, rules and settings, the HTTP request, the worker, the decider and its timer are the product's. Only the clock,
which jumps to the due time, and the socket are replaced.
"""

from __future__ import annotations

import http.client
import io
import itertools
import json
import socket
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from prometheus_client.registry import CollectorRegistry

from chronolet.adapters.kube_sinks import calls
from chronolet.adapters.kube_sinks.calls import HttpCaller
from chronolet.kernel.decider import Due, Effect
from chronolet.kernel.kind import Job
from chronolet.kernel.step.input import Input
from chronolet.kernel.step.ledger import Ledger
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import Committed
from chronolet.kube_events.actor import NODE, kind
from chronolet.kube_events.effects import jobs
from chronolet.kube_events.policy import RETRY_PAUSE
from chronolet.kube_events.state import State
from chronolet.node.composition import event_sinks
from chronolet.node.metrics.requests import RequestMetrics
from chronolet.node.settings.policies import event_policy
from chronolet.node.settings.table import Settings
from chronolet_schemas import kube_events, registry
from chronolet_schemas.envelope import START, Event, Message, Position
from chronolet_schemas.keys import Shard
from chronolet_schemas.times import Stamp
from tests.conformance.drivers.context import Context
from tests.conformance.drivers.stamps import stamp
from tests.conformance.outcome import Case, differences

_T0 = 1_700_000_000_000
_SHARD = Shard("kube_events")
_ANSWERS = {
    "ok": (201, "Event", "Started"),
    "not_found": (404, "Status", "NotFound"),
    "already_exists": (409, "Status", "AlreadyExists"),
    "internal_error_status": (500, "Status", "InternalError"),
    "forbidden": (403, "Status", "Forbidden"),
    "unexpected_object": (200, "Pod", ""),
}


class _Server:
    """Answers calls as a case prescribes; the last answer is repeated."""

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.calls: list[str] = []

    def answer(self) -> bytes:
        word = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if word == "transport_error":
            raise ConnectionRefusedError("connection refused")
        status, what, reason = _ANSWERS[word]
        body = json.dumps({"apiVersion": "v1", "kind": what, "reason": reason}).encode()
        return f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class _Socket:
    """A socket that discards what is sent; reads return the server's next answer."""

    def __init__(self, server: _Server) -> None:
        self._server = server

    def sendall(self, _data: object) -> None: ...

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._server.answer())

    def shutdown(self, _how: int) -> None: ...

    def close(self) -> None: ...


class _Connection(http.client.HTTPConnection):
    """An HTTP connection over a `_Socket`."""

    def __init__(self, server: _Server) -> None:
        super().__init__("api.test", timeout=1)
        self._server = server

    def connect(self) -> None:
        made: Any = _Socket(self._server)
        self.sock: socket.socket = made

    def request(self, method: str, *arguments: Any, **named: Any) -> None:
        self._server.calls.append({"POST": "create", "PATCH": "patch"}[method])
        super().request(method, *arguments, **named)


class _Node:
    """A node's `kube_events` actor, with an API server as its only sink."""

    def __init__(self, token_file: str) -> None:
        settings = Settings(
            node="node-1",
            root_dir=Path("/"),
            event_sinks=(),
            event_api_server="http://api.test",
            event_api_token_file=token_file,
            event_qps=0,
        )
        named = event_sinks.sinks(settings, RequestMetrics(CollectorRegistry()))
        self.kind = kind(jobs(named), event_policy(settings, RETRY_PAUSE))
        head = MemoryStore(MemoryServer()).heads([_SHARD])[_SHARD]
        self.ledger = Ledger(self.kind, _SHARD, "1:x", head, registry.SCHEMA)
        self.now = _T0

    def step(self, source: Any, message: Message) -> list[Event]:
        """Decide and commit one message; return its events."""
        turn = self.ledger.begin()
        self.ledger.decide(turn, Input(source, START, (NODE,), message, "", type(message).__name__), self.now)
        self.ledger.committed(turn, Committed(self.ledger.version + 1, Position(self.now, len(turn.records))))
        return turn.events

    def record(self, *events: tuple[Stamp, kube_events.Recorded]) -> None:
        self.step("signal", self.kind.batches[kube_events.Recorded](events))

    def deliver(self) -> list[Event]:
        """Run the only outstanding effect once, with the kind's own job; return the events of its result."""
        (effect,) = self.outstanding
        job = self.kind.effects[type(effect)]
        assert isinstance(job, Job)
        answer = job.run(effect, Context())
        assert answer is not None
        return self.step("signal", answer)

    @property
    def outstanding(self) -> Sequence[Effect]:
        return self.kind.decider.outstanding(self._state)

    @property
    def due(self) -> int | None:
        return self.kind.decider.due(self._state)

    @property
    def _state(self) -> State:
        return self.ledger.states[NODE]


def sink_retry(case: Case) -> Iterable[str]:
    """Compare the delivery of the last of several similar events, after the earlier ones have been delivered."""
    given = case["given"]
    with tempfile.NamedTemporaryFile("w", suffix=".token") as token:
        if given["sink_answers"] == ["request_construction_error"]:
            # A token that is not valid in a header.
            token.write("two\nlines")
            token.flush()
        node, server = _Node(token.name), _Server(["ok"])
        with (
            mock.patch.object(HttpCaller, "_connection", side_effect=lambda: _Connection(server)),
            mock.patch.object(calls, "_cut"),  # no answer is late, however long this process stalls
        ):
            *before, last = _similar(given["event_count"])
            if before:
                node.record(*before)
                node.deliver()
            server = _Server(given["sink_answers"])
            node.record(last)
            found = _delivered(node, given.get("broadcaster_shut_down_during_pause_number"))
    yield from differences(case["expect"], {"calls": server.calls, **found})


def _similar(count: int) -> Iterator[tuple[Stamp, kube_events.Recorded]]:
    event = kube_events.Recorded(
        object_kind="Pod", namespace="shop", name="web-0", severity="Normal", reason="Started", message="m"
    )
    return ((stamp(_T0, number + 1), event) for number in range(count))


def _delivered(node: _Node, shut_down: int | None) -> dict[str, Any]:
    """Deliver, waiting out each pause, until nothing is pending or pause number `shut_down` begins; return the pauses
    and the outcome.
    """
    events: list[Event] = []
    pauses: list[Any] = []
    for number in itertools.count(1):
        events += node.deliver()
        if node.due is None:
            assert not node.outstanding
            return {"pauses_seconds": pauses, "outcome": _outcome(events[-1])}
        assert not node.outstanding, "no delivery is pending"
        if number == shut_down:
            break
        pauses.append(_pause(node.due - node.now, number))
        node.now = node.due
        node.step("due", Due(at=node.due))
    return {"pauses_seconds": pauses, "outcome": "stopped_by_shutdown"}


def _pause(milliseconds: int, number: int) -> Any:
    if number == 1:
        return "random_0_to_10" if 0 < milliseconds <= 10_000 else milliseconds / 1000
    return milliseconds // 1000 if milliseconds % 1000 == 0 else milliseconds / 1000


def _outcome(last: Event) -> str:
    match last:
        case kube_events.Delivered():
            return "recorded"
        case kube_events.GivenUp(reason="tries"):
            return "given_up"
        case kube_events.GivenUp(reason="refused" | "known"):
            return "abandoned"
        case other:
            return type(other).__name__
