"""Writes a log in a real Redis, with archive files, snapshots and trimming, as the agent would.

Input: names of pods. Output: the log, and the results of commands run on it. Next: test_real_redis, test_watch and
test_completion.
"""

import sys
from pathlib import Path

from chronolet.adapters.archive.places import place
from chronolet.cli.services import Services
from chronolet.kernel.log.archive import Archive
from chronolet.kernel.step.snapshots import EntityImage, encode_states
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Acquired, Committed, Snapshot, Step
from chronolet.pod.actor import kind
from chronolet_schemas import codec, kernel, pod, registry
from chronolet_schemas.envelope import START, Event, Position, Record
from chronolet_schemas.keys import Shard, shard_for, shards_of
from tests.cli.support.written_node import Result, manifest, run
from tests.support.patience import PATIENT
from tests.support.redis.server import PrivateRedis

NODE = "node-1"
POD = kind()
FILLING = 300
"""The number of entries that `fill` writes."""


class LogOwner:
    """A process that owns the keeper's shard and every shard of `pod`, and writes events of pods."""

    def __init__(self, server: PrivateRedis, root: Path) -> None:
        self.url = server.url
        self.root = root
        self.store = RedisStore(server.url, NODE, timeouts=PATIENT)
        self.store.check()
        started = kernel.LogStarted(run="run-1", node=NODE, shards={"pod": POD.shards})
        self.store.begin("run-1", {"pod": POD.shards}, self.record(f"node/{NODE}", started))
        self.store.renew("p1", "", 3_600_000)
        self.heads = {}
        for shard in (*shards_of("pod", POD.shards), Shard("keeper")):
            acquired = self.store.acquire(shard, "", "p1", registry.SCHEMA)
            assert isinstance(acquired, Acquired)
            self.heads[shard] = acquired.head

    def record(self, entity: str, event: Event) -> Record:
        return Record(registry.type_of(type(event)), entity, event.subject(), "pod/0#1", "", codec.encode(event))

    def write(self, shard: Shard, *records: Record, upto: Position = START) -> Position:
        head = self.store.heads([shard])[shard]
        step = Step(
            shard=shard,
            token=head.token,
            version=head.version,
            step_id=f"step-{shard}-{head.version}",
            schema=registry.SCHEMA,
            log_cursor=head.log_cursor,
            new_log_cursor=max(head.log_cursor, upto),
            mail_cursor=head.mail_cursor,
            new_mail_cursor=head.mail_cursor,
            records=records,
        )
        answer = self.store.step(step)
        assert isinstance(answer, Committed)
        return answer.at

    def fill(self) -> Position:
        """Write `FILLING` kernel events, enough for trimming to remove some; return the position of the last one."""
        shard = Shard("pod", 0)
        jumped = self.record(f"shard/{shard}", kernel.ClockJumped(by_milliseconds=1))
        return self.write(shard, *[jumped] * FILLING)

    def accept(self, name: str) -> Position:
        key = f"default/{name}"
        event = pod.SpecAccepted(
            pod=key,
            uid=f"uid-{name}",
            source="apply",
            digest="d",
            manifest=manifest(name),
            accepted_at=1,
            sandbox_hash="s",
            container_hashes={},
        )
        return self.write(shard_for("pod", POD.shards, key), self.record(f"pod/{key}", event))

    def archive_and_trim(self, upto: Position) -> None:
        """Store snapshots of all shards, then archive and trim the log up to this position as the keeper does."""
        states: dict[Shard, dict[str, EntityImage[object]]] = {shard: {} for shard in shards_of("pod", POD.shards)}
        entries = self.store.read_log(START, 10_000, upto)
        for entry in entries:
            key = entry.entity.partition("/")[2]
            if entry.type.startswith("pod."):
                state = POD.decider.evolve(POD.decider.initial, codec.decode(entry.type, entry.data, Event))
                states[shard_for("pod", POD.shards, key)][key] = EntityImage(state=state)
        Archive(place("", self.root)("run-1"), NODE, "run-1").write(entries, START)
        for shard, images in states.items():
            self.write(shard, upto=upto)
            token = self.heads[shard].token
            assert self.store.snapshot(shard, token, Snapshot(upto, POD.format, encode_states(images)))
        keeper = Shard("keeper")
        assert self.store.mark_archived(keeper, self.heads[keeper].token, upto)
        removed = self.store.trim(keeper, self.heads[keeper].token, upto, list(states))
        assert isinstance(removed, int)
        assert removed >= 100, "Redis removes whole nodes of the stream, with a hundred entries each"

    @property
    def flags(self) -> list[str]:
        return ["--redis", self.url, "--hostname-override", NODE, "--root-dir", str(self.root)]

    def command(self, *arguments: str) -> list[str]:
        """Return the argument list of a process that runs the command."""
        return [sys.executable, "-m", "chronolet.cli", *self.flags, *arguments]

    def run(self, *arguments: str) -> Result:
        """Run the command in this process, with the real services."""
        return run(Services(), *self.flags, *arguments)
