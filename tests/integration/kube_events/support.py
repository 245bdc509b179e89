"""A node whose only process hosts kube_events, and a fake actor that records KubeEvents.

Input: a redis-server. Output: `Events`, which records KubeEvents through real steps, starts and kills the agent, and
reads the outcome of each event from the log.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Acquired, Committed, Step, StoreBroken, StoreUnreachable
from chronolet.node.composition.kinds import SHARDS
from chronolet_schemas import codec, kernel, kube_events, registry
from chronolet_schemas.envelope import START, Event, Record
from chronolet_schemas.keys import Keys, Shard
from tests.support import scratch
from tests.support.redis.server import PrivateRedis

NODE = "n"
_RECORDER = Shard("pleg")


def recorded(number: int, **fields: Any) -> kube_events.Recorded:
    """Return a KubeEvent about the object with this number."""
    known: dict[str, Any] = {
        "object_kind": "Pod",
        "namespace": "shop",
        "name": f"web-{number}",
        "severity": "Normal",
        "reason": "Started",
        "message": f"started for the {number}th time",
    }
    return kube_events.Recorded(**{**known, **fields})


class Events:
    """The node: records KubeEvents, starts and kills the agent, and reads the outcome."""

    def __init__(self, server: PrivateRedis, root: Path, **settings: object) -> None:
        self.server = server
        self.root = root
        self.settings = settings
        self.store = RedisStore(server.url, NODE)
        self.store.check()
        started = kernel.LogStarted(run="run-1", node=NODE, shards=dict(SHARDS))
        self.store.begin("run-1", SHARDS, _record(f"node/{NODE}", started))
        self.store.renew("recorder", "", 3_600_000)
        acquired = self.store.acquire(_RECORDER, "", "recorder", registry.SCHEMA)
        assert isinstance(acquired, Acquired)
        self._head = acquired.head
        self._version = acquired.head.version
        self._agent: subprocess.Popen[bytes] | None = None
        self.count = 0
        self.shard = Shard("kube_events")
        self.last = START
        """The position of the last recorded event."""

    # -- recording -----------------------------------------------------------------------------------------------------
    def record(self, *events: kube_events.Recorded) -> None:
        """Record the events in one step."""
        head = self._head
        step = Step(
            shard=_RECORDER,
            token=head.token,
            version=self._version,
            step_id=uuid.uuid4().hex,
            schema=registry.SCHEMA,
            log_cursor=head.log_cursor,
            new_log_cursor=head.log_cursor,
            mail_cursor=head.mail_cursor,
            new_mail_cursor=head.mail_cursor,
            records=tuple(_record("pleg/node", event) for event in events),
        )
        answer = self._committed(step)
        assert isinstance(answer, Committed)
        self._version, self.last = answer.version, answer.at
        self.count += len(events)

    def _committed(self, step: Step) -> object:
        """Send the same step until there is a reply, as a host does; return the reply. Raises the store's error if
        there is none for a minute or longer.
        """
        until = time.monotonic() + scratch.hang_limit(60)
        while True:
            try:
                return self.store.step(step)
            except (StoreBroken, StoreUnreachable):
                if time.monotonic() > until:
                    raise

    # -- the agent -----------------------------------------------------------------------------------------------------
    def start(self) -> None:
        given = {"redis": self.server.url, "actors": "kube_events", "pause": 50, "call": 600, **self.settings}
        words = [f"{name}={value}" for name, value in given.items()]
        command = [sys.executable, "-m", "tests.integration.process.agent", str(self.root), *words]
        with self.log.open("ab") as log:
            self._agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def log(self) -> Path:
        return self.root.parent / f"{self.root.name}.log"

    @property
    def pid(self) -> int:
        assert self._agent is not None
        return self._agent.pid

    def kill9(self) -> None:
        assert self._agent is not None
        self._agent.kill()
        self._agent.wait()

    def close(self) -> None:
        if self._agent is not None:
            self.kill9()
        self.store.close()

    # -- outcome -------------------------------------------------------------------------------------------------------
    def facts(self) -> list[Any]:
        """Return the events of kube_events in the log."""
        own = [entry for entry in self.store.scan(START) if entry.entity.startswith("kube_events/")]
        return [codec.decode(entry.type, entry.data, Event) for entry in own]

    def recorded(self) -> list[kube_events.Recorded]:
        """Return all recorded KubeEvents in the log."""
        kind = registry.type_of(kube_events.Recorded)
        found = [codec.decode(one.type, one.data, Event) for one in self.store.scan(START) if one.type == kind]
        return [event for event in found if isinstance(event, kube_events.Recorded)]

    def balance(self, sink: str) -> Counter[str]:
        """Count the KubeEvents that were heard and suppressed, the posts, and the `Correlated` events in the log; and
        for this sink, the posts that were delivered or given up (in all and by reason), and the failed deliveries.
        """
        found: Counter[str] = Counter()
        for fact in self.facts():
            match fact:
                case kube_events.Correlated():
                    found["heard"] += fact.heard
                    found["suppressed"] += fact.suppressed
                    found["posted"] += len(fact.posts)
                    found["correlated"] += 1
                case kube_events.Delivered() if fact.sink == sink:
                    found["delivered"] += fact.count
                case kube_events.GivenUp() if fact.sink == sink:
                    found["given up"] += fact.count
                    found[f"given up: {fact.reason}"] += fact.count
                case kube_events.DeliveryFailed() if fact.sink == sink:
                    found["failed"] += 1
        return found

    def posts(self) -> list[kube_events.Post]:
        """Return all posts to be delivered."""
        return [post for fact in self.facts() if isinstance(fact, kube_events.Correlated) for post in fact.posts]

    def settled(self, sink: str) -> bool:
        """Whether all recorded KubeEvents have been correlated, and all posts have been delivered to the sink or given
        up.
        """
        found = self.balance(sink)
        whole = found["heard"] == self.count
        return whole and found["posted"] == found["delivered"] + found["given up"]

    def wait_settled(self, *sinks: str, seconds: float = 30) -> None:
        try:
            for sink in sinks:
                scratch.wait_until(lambda sink=sink: self.settled(sink), f"the end at {sink}", seconds)  # type: ignore[misc]
        except TimeoutError as error:
            error.add_note(f"{[dict(self.balance(sink)) for sink in sinks]}\n{self.log.read_text()[-3000:]}")
            raise

    def stream(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the entries of the stream that `get events` reads, as (position, Event object)."""
        entries: Any = self.server.client().xrange(Keys(NODE).kube_events)
        return [(at.decode(), msgspec.json.decode(fields[b"event"])) for at, fields in entries]


def _record(entity: str, event: Event) -> Record:
    return Record(registry.type_of(type(event)), entity, event.subject(), "pleg#1", "", codec.encode(event))


@contextmanager
def node(server: PrivateRedis, root: Path, **settings: object) -> Iterator[Events]:
    """Yield a node with a new log, whose agent is started by `start()`; kill the agent after the block."""
    events = Events(server, root, **settings)
    try:
        yield events
    finally:
        events.close()


def names(posts: Sequence[kube_events.Post]) -> list[tuple[str, int]]:
    return [(post.name, post.count) for post in posts]
