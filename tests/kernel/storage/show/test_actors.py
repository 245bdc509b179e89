"""`chronolet_actors_1`: the owner of each shard, what waits for it, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from chronolet_schemas.envelope import START, Position
from chronolet_schemas.keys import Keys, Shard
from tests.kernel.storage import node
from tests.kernel.storage.show.replies import KEYS, Reply, actors, add, call, fill
from tests.support.redis.server import PrivateRedis


def with_shards(client: redis.Redis, **counts: int) -> None:
    client.hset(KEYS.meta, mapping={"run": "r"} | {f"shards:{kind}": count for kind, count in counts.items()})


def own(client: redis.Redis, shard: str, owner: str = "p", **fields: Any) -> None:
    """Give a shard an owner with a lease; `fields` are further fields of its hash."""
    client.hset(f"{KEYS.prefix}:shard:{shard}", mapping={"token": f"3:{owner}", "epoch": 3, "version": 7, **fields})
    client.set(KEYS.alive(owner), "pod host:1", px=3_600_000)
    client.hset(KEYS.meta, f"process:{owner}", 17)


def refusal(client: redis.Redis, *arguments: object) -> str:
    with pytest.raises(redis.ResponseError) as caught:
        actors(client, *arguments)
    return str(caught.value)


def test_a_line_has_owner_lag_age_and_waiting_commands(client: redis.Redis) -> None:
    with_shards(client, pleg=1)
    fill(client, range(1, 11))
    seconds, micros = client.time()
    now = seconds * 1000 + micros // 1000
    own(client, "pleg", at=f"{now - 5000}-4", log_cursor="1-4", mail_cursor=f"{now - 9000}-0")
    client.xadd(f"{KEYS.prefix}:mailbox:pleg", {"type": "consumed"}, id=f"{now - 9000}-0")
    client.xadd(f"{KEYS.prefix}:mailbox:pleg", {"type": "waits"}, id=f"{now - 4000}-0")
    client.xadd(f"{KEYS.prefix}:mailbox:pleg", {"type": "waits"})
    reply = actors(client)
    (line,) = reply.lines
    assert {name: line[name] for name in ("shard", "owner", "alive", "info", "renewal", "epoch", "version")} == {
        "shard": "pleg",
        "owner": "p",
        "alive": True,
        "info": "pod host:1",
        "renewal": 17,
        "epoch": 3,
        "version": 7,
    }
    assert 0 < line["lease_milliseconds"] <= 3_600_000
    assert (line["at"], line["log_cursor"], line["lag_at_most"], line["waiting"]) == (f"{now - 5000}-4", "1-4", 6, 2)
    assert line["age_milliseconds"] >= 5000
    assert line["waiting_milliseconds"] >= 4000
    assert line["problems"] == []
    assert reply.summary["shards"] == 1
    assert reply.summary["begins_time"] == "2025-11-27T13:31:07.001Z"


def test_the_names_of_keys_and_fields_are_those_of_the_store(redis_server: PrivateRedis) -> None:
    store = node.connect(redis_server.url)
    token = node.begin(store)
    store.step(node.fitting(store, token, 3))
    keeper = node.take(store, node.KEEPER)
    store.send(node.KEEPER, "keeper.Measure@1", "keeper/node", "request-1", b"\x80")
    store.send(node.KEEPER, "keeper.Measure@1", "keeper/node", "request-2", b"\x80")
    client = redis_server.client()
    first = store.read_mail(node.KEEPER, START, 1)[0]
    client.hset(node.KEYS.shard(node.KEEPER), "mail_cursor", str(first.id))
    reply = call(client, "chronolet_actors_1", node.KEYS.meta)
    assert reply.of("shard") == ["keeper", "pod/0", "pod/1"]
    assert reply.of("owner") == ["p", "p", None]
    assert reply.of("alive") == [True, True, False]
    assert reply.of("info")[:2] == ["info", "info"]
    assert reply.of("waiting") == [1, 0, 0]
    assert reply.lines[0]["mail_cursor"] == str(first.id)
    head = store.heads([node.SHARD])[node.SHARD]
    line = reply.lines[1]
    assert (line["version"], line["at"]) == (head.version, str(head.at))
    assert line["lag_at_most"] == store.last().n - head.log_cursor.n == 4
    assert f"{line['epoch']}:{line['owner']}" == token
    assert keeper == f"{reply.lines[0]['epoch']}:p"
    store.retire("p", [(node.KEEPER, keeper)])
    (released,) = call(client, "chronolet_actors_1", node.KEYS.meta, "SHARD", "keeper").lines
    assert (released["owner"], released["epoch"]) == (None, reply.lines[0]["epoch"])
    assert reply.summary["begins"] == str(store.read_log(START, 1)[0].position)
    store.close()


def test_only_shards_with_problems_are_shown_for_stuck(client: redis.Redis) -> None:
    with_shards(client, a=1, b=1, c=1, d=1, e=1, f=1, g=1)
    at = add(client, 20_000)
    own(client, "a", log_cursor=at)
    own(client, "b", owner="gone", log_cursor=at)
    client.delete(KEYS.alive("gone"))
    client.set(f"{KEYS.prefix}:shard:d", "x")
    own(client, "e", log_cursor="1-1")
    own(client, "f", **{"log_cursor": at, "try:1-1": 1, "try:1-2": 3})
    own(client, "g", log_cursor=at)
    client.xadd(f"{KEYS.prefix}:mailbox:g", {"type": "waits"}, id="1000-0")
    reply = actors(client, "STUCK", 60)
    problems = dict(zip(reply.of("shard"), reply.of("problems"), strict=True))
    waited = problems.pop("g")[0]
    assert problems == {
        "b": ["its owner gone does not renew its lease"],
        "c": ["no process owns it"],
        "d": [f"{KEYS.prefix}:shard:d is a string, expected a hash"],
        "e": ["it has not consumed 19999 entries of the log"],
        "f": ["a message or effect is at attempt 3"],
    }
    assert waited.startswith("commands wait: 1, the oldest for ")
    assert (reply.summary["stuck"], reply.summary["shards"]) == (6, 7)


def test_commands_that_have_just_arrived_are_no_problem(client: redis.Redis) -> None:
    with_shards(client, a=1)
    own(client, "a")
    client.xadd(f"{KEYS.prefix}:mailbox:a", {"type": "waits"})
    assert actors(client, "STUCK", 3600).lines == []
    assert actors(client, "STUCK", 0).of("shard") == ["a"]


def all_pages(client: redis.Redis, *arguments: object) -> list[Reply]:
    replies = [actors(client, *arguments)]
    while replies[-1].summary["more"]:
        replies.append(actors(client, *arguments, "AFTER", replies[-1].summary["next"]))
    return replies


@pytest.mark.parametrize("read", [1, 3, 7, 1000])
def test_cursors_continue_without_loss_or_repetition(client: redis.Redis, read: int) -> None:
    with_shards(client, pod=12, a=1, z=2)
    replies = all_pages(client, "READ", read)
    assert all(reply.summary["read"] <= read for reply in replies)
    assert [name for reply in replies for name in reply.of("shard")] == [
        "a",
        *(str(Shard("pod", number)) for number in range(12)),
        "z/0",
        "z/1",
    ]


def test_at_most_a_hundred_shards_are_read_unless_more_are_requested(client: redis.Redis) -> None:
    with_shards(client, pod=1000, prober=1000)
    assert [reply.summary["read"] for reply in all_pages(client)] == [100] * 20
    assert [reply.summary["read"] for reply in all_pages(client, "READ", 1000)] == [1000, 1000]


def test_shards_are_chosen_by_name(client: redis.Redis) -> None:
    with_shards(client, pod=3, pleg=1)
    assert actors(client, "SHARD", "pod/*").of("shard") == ["pod/0", "pod/1", "pod/2"]
    assert actors(client, "SHARD", "pleg", "SHARD", "*/2").of("shard") == ["pleg", "pod/2"]


def test_a_node_without_a_log_has_no_shards(client: redis.Redis) -> None:
    reply = actors(client)
    assert reply.lines == []
    assert (reply.summary["exists"], reply.summary["shards"], reply.summary["begins"]) == (False, 0, None)


def test_a_node_whose_name_is_a_pattern_is_found(client: redis.Redis) -> None:
    keys = Keys("n%d.*meta:")
    client.hset(keys.meta, "shards:pleg", 1)
    client.hset(keys.shard(Shard("pleg")), "token", "1:p:meta")
    client.set(keys.alive("p:meta"), "here")
    (line,) = call(client, "chronolet_actors_1", keys.meta).lines
    assert (line["owner"], line["info"]) == ("p:meta", "here")


def test_damaged_values_are_shown_as_unknown(client: redis.Redis) -> None:
    with_shards(client, a=1, b=1)
    own(client, "a", at="x", log_cursor="?", mail_cursor="(", version="many")
    client.delete(KEYS.alive("p"))
    client.hset(KEYS.alive("p"), "a", "b")
    client.set(f"{KEYS.prefix}:mailbox:a", "x")
    client.hset(f"{KEYS.prefix}:shard:b", "token", "nonsense")
    a, b = actors(client).lines
    assert (a["owner"], a["alive"], a["version"], a["lag_at_most"], a["age_milliseconds"]) == (
        "p",
        False,
        None,
        None,
        None,
    )
    assert (b["owner"], b["problems"]) == (None, ["no process owns it"])


def test_bad_arguments_and_keys_are_refused_in_readable_text(client: redis.Redis) -> None:
    with_shards(client, pod=2)
    assert 'AFTER is "pod", expected the name of a shard' in refusal(client, "AFTER", "pod")
    assert 'STUCK is "x", expected a number from 0' in refusal(client, "STUCK", "x")
    assert 'READ is "1001", expected a number from 1 to 1000' in refusal(client, "READ", 1001)
    assert "expected one of AFTER, READ, SHARD, STUCK" in refusal(client, "FROM", "-")
    with pytest.raises(redis.ResponseError, match=r"expected a name such as chronolet:\{node-1\}:meta"):
        client.fcall_ro("chronolet_actors_1", 1, "elsewhere")
    client.hset(KEYS.meta, "shards:pod", "1000000000")
    assert f'{KEYS.meta}: shards:pod is "1000000000", expected 1 to 1000' in refusal(client)
    client.hset(KEYS.meta, "shards:pod", 2)
    client.set(KEYS.log, "x")
    assert f"{KEYS.log} is a string, expected a stream" in refusal(client)
    client.delete(KEYS.meta)
    client.set(KEYS.meta, "x")
    assert f"{KEYS.meta} is a string, expected a hash" in refusal(client)


def test_the_lag_of_a_shard_that_has_read_everything_is_zero(client: redis.Redis) -> None:
    with_shards(client, a=1)
    own(client, "a", log_cursor=add(client, 9))
    assert actors(client).of("lag_at_most") == [0]
    assert str(Position.parse(actors(client).lines[0]["log_cursor"])) == actors(client).lines[0]["log_cursor"]
