"""The command line against a real redis-server: what lies in Redis and in archive files is one history.

Commands run in this process unless the process itself is the subject: followers, interrupts, what is imported.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from chronolet.cli.services import Services
from chronolet.kernel.log.archive import Archive
from chronolet.kernel.step.snapshots import EntityImage, encode_states
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Acquired, Committed, Snapshot, Step
from chronolet.pod.actor import kind
from chronolet_schemas import codec, kernel, pod, registry
from chronolet_schemas.envelope import START, Event, Position, Record
from chronolet_schemas.keys import Shard, shard_for, shards_of
from tests.cli.written import Said, manifest, run
from tests.support.patience import PATIENT
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS

NODE = "node-1"
POD = kind()
FILLING = 300


class Owner:
    """Owns every shard of `pod` and the keeper, and writes what a test says."""

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
            acquired = self.store.acquire(shard, "", "p1", registry.SCHEMA, proven_dead=False)
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
        """As many events of the kernel's as trimming needs in order to be worth while; the last one's position."""
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
        """What the keeper does, with snapshots of all shards."""
        states: dict[Shard, dict[str, EntityImage[object]]] = {shard: {} for shard in shards_of("pod", POD.shards)}
        entries = self.store.read_log(START, 10_000, upto)
        for entry in entries:
            key = entry.entity.partition("/")[2]
            if entry.type.startswith("pod."):
                state = POD.decider.evolve(POD.decider.initial, codec.decode(entry.type, entry.data, Event))
                states[shard_for("pod", POD.shards, key)][key] = EntityImage(state=state)
        Archive(self.root, NODE, "run-1").write(entries, START)
        for shard, images in states.items():
            self.write(shard, upto=upto)
            token = self.heads[shard].token
            assert self.store.snapshot(shard, token, Snapshot(upto, POD.format, encode_states(images)))
        keeper = Shard("keeper")
        assert self.store.mark_archived(keeper, self.heads[keeper].token, upto)
        removed = self.store.trim(keeper, self.heads[keeper].token, upto, list(states))
        assert isinstance(removed, int)
        assert removed >= 100, "whole nodes of the stream go, a hundred entries each"

    @property
    def flags(self) -> list[str]:
        return ["--redis", self.url, "--hostname-override", NODE, "--root-dir", str(self.root)]

    def command(self, *arguments: str) -> list[str]:
        """The argument list of a process."""
        return [sys.executable, "-m", "chronolet.cli", *self.flags, *arguments]

    def run(self, *arguments: str) -> Said:
        """The command in this process, with the services that a process has."""
        return run(Services(), *self.flags, *arguments)


@pytest.fixture
def owner(redis_server: PrivateRedis, tmp_path: Path) -> Iterator[Owner]:
    owning = Owner(redis_server, tmp_path)
    yield owning
    owning.store.close()


def names(said: Said) -> list[str]:
    assert said.status == 0, said.err
    return said.out.split()


def test_pods_are_the_same_before_and_after_trimming(owner: Owner) -> None:
    owner.accept("a")
    owner.accept("b")
    upto = owner.fill()
    owner.accept("c")
    expected = ["pod/a", "pod/b", "pod/c"]
    assert names(owner.run("get", "pods", "-o", "name")) == expected
    owner.archive_and_trim(upto)
    assert all("/a" not in entry.entity for entry in owner.store.read_log(START, 1_000))
    assert names(owner.run("get", "pods", "-o", "name")) == expected
    owner.accept("d")
    assert names(owner.run("get", "pods", "-o", "name")) == [*expected, "pod/d"]


def test_the_log_reads_on_from_the_archive_into_the_stream(owner: Owner) -> None:
    owner.accept("a")
    upto = owner.fill()
    owner.accept("b")
    owner.archive_and_trim(upto)
    everything = FILLING + 3
    shown = [json.loads(line) for line in owner.run("log", "-o", "json").out.splitlines()]
    assert [line["position"].partition("-")[2] for line in shown] == [str(n) for n in range(1, everything + 1)]
    assert [line["data"]["pod"] for line in shown if "pod" in line["data"]] == ["default/a", "default/b"]
    for count in (2, 290, 302, 400):
        last = owner.run("log", "-n", str(count)).out.splitlines()
        wanted = range(max(1, everything - count + 1), everything + 1)
        assert [line.split()[1] for line in last] == [f"#{n}" for n in wanted]
    assert len(owner.run("log", "--since", "1h").out.splitlines()) == everything


def test_where_the_archive_is_not_at_hand_pods_are_told_and_the_log_says_what_is_missing(
    owner: Owner, tmp_path: Path
) -> None:
    owner.accept("a")
    upto = owner.fill()
    owner.accept("b")
    owner.archive_and_trim(upto)
    owner.root = tmp_path / "another machine"
    assert names(owner.run("get", "pods", "-o", "name")) == ["pod/a", "pod/b"]
    assert owner.run("log", "--since", "1h").status == 1
    missing = owner.run("log")
    assert missing.status == 1
    assert missing.err.startswith("error: the log's entries after 0-0 up to ")
    assert missing.err.count("\n") == 1


def test_a_snapshot_of_a_later_release_is_passed_over_for_the_archive(owner: Owner) -> None:
    owner.accept("a")
    owner.archive_and_trim(owner.fill())
    for shard in shards_of("pod", POD.shards):
        snapshot = owner.store.read_snapshots([shard]).get(shard)
        assert snapshot is not None
        newer = Snapshot(snapshot.position, POD.format + 1, b"\xc1")
        assert owner.store.snapshot(shard, owner.heads[shard].token, newer)
    assert names(owner.run("get", "pods", "-o", "name")) == ["pod/a"]


def test_a_damaged_archive_is_one_line(owner: Owner) -> None:
    owner.accept("a")
    owner.archive_and_trim(owner.fill())
    file = next((owner.root / "archive").rglob("*.archive"))
    file.write_bytes(file.read_bytes()[:-9])
    damaged = owner.run("log")
    assert damaged.status == 1
    assert damaged.err.startswith(f"error: {file}: ")
    assert damaged.err.count("\n") == 1


def test_a_follower_sees_what_comes_and_ends_quietly_on_interrupt(owner: Owner) -> None:
    follower = subprocess.Popen(
        owner.command("log", "-f", "--type", "pod.SpecAccepted"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        assert follower.stdout is not None
        owner.accept("first")
        assert "pod/default/first" in follower.stdout.readline()
        owner.accept("second")
        assert "pod/default/second" in follower.stdout.readline()
        follower.send_signal(2)
        out, err = follower.communicate(timeout=HANG_SECONDS)
    finally:
        follower.kill()
        follower.wait()
    assert (follower.returncode, out, err.strip()) == (130, "", "")


def test_a_server_that_goes_away_ends_a_follower_with_one_line(owner: Owner, redis_server: PrivateRedis) -> None:
    follower = subprocess.Popen(
        owner.command("log", "-f"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        assert follower.stdout is not None
        assert "kernel.LogStarted" in follower.stdout.readline()
        redis_server.kill9()
        _, err = follower.communicate(timeout=HANG_SECONDS)
    finally:
        follower.kill()
        follower.wait()
    assert follower.returncode == 1
    assert err.startswith("error: Redis at ")
    assert err.count("\n") == 1


def test_nothing_is_written_by_looking(owner: Owner) -> None:
    owner.accept("a")
    client = owner_client(owner)
    before = {key: client.dump(key) for key in sorted(client.keys())}
    for words in (["get", "pods"], ["get", "actors"], ["describe", "pods"], ["log"], ["get", "containers"]):
        assert owner.run(*words).status == 0
    assert {key: client.dump(key) for key in sorted(client.keys())} == before


def owner_client(owner: Owner) -> redis.Redis:
    return redis.Redis.from_url(owner.url)


def test_reading_loads_neither_docker_nor_grpc_nor_the_agent(owner: Owner) -> None:
    owner.accept("a")
    words = owner.command("get", "pods")[3:]
    code = (
        "import sys; from chronolet.cli.main import status_of; from chronolet.cli.services import Services; "
        f"assert status_of({words!r}, Services()) == 0; "
        "print(sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'docker', 'requests', 'grpc', 'pykka', 'prometheus_client', 'yaml', 'rich'}))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"
