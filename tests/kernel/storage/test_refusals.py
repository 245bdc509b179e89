"""Errors of the store for unsuitable servers and invalid data: one clear line, and nothing written."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
import redis

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import (
    Acquired,
    Committed,
    Conflict,
    DeadLetter,
    Snapshot,
    Step,
    StoreBroken,
    StoreUnreachable,
)
from chronolet_schemas.envelope import START, Position
from tests.kernel.storage.node import KEEPER, KEYS, SHARD, begin, connect, fitting, numbers, record, take, unchecked
from tests.support.redis.server import PrivateRedis, private_redis

Refused = Callable[[RedisStore, str], object]
LETTER = DeadLetter("log", "1-1", "t@1", "e", b"", "why")


@pytest.fixture
def store(redis_server: PrivateRedis) -> Iterator[RedisStore]:
    made = connect(redis_server.url)
    yield made
    made.close()


def state(client: redis.Redis) -> dict[bytes, bytes | None]:
    """Return everything that the server holds, key by key."""
    return {key: client.dump(key) for key in client.scan_iter()}


# -- keys of the wrong type ------------------------------------------------------------------------------------------

WRONG_KEYS: dict[str, tuple[str, Refused]] = {
    "step, log": (KEYS.log, lambda s, t: s.step(_step)),
    "step, shard": (KEYS.shard(SHARD), lambda s, t: s.step(_step)),
    "step, mailbox": (KEYS.mailbox(SHARD), lambda s, t: s.step(_step)),
    "step, dead letters": (KEYS.dead, lambda s, t: s.step(_step)),
    "begin, log": (KEYS.log, lambda s, t: begin(s)),
    "begin, meta": (KEYS.meta, lambda s, t: begin(s)),
    "acquire": (KEYS.shard(SHARD), lambda s, t: s.acquire(SHARD, t, "p", 1)),
    "heads": (KEYS.shard(SHARD), lambda s, t: s.heads([KEEPER, SHARD])),
    "renew": (KEYS.alive("p"), lambda s, t: s.renew("p", "", 1000)),
    "retire": (KEYS.shard(SHARD), lambda s, t: s.retire("p", [(SHARD, t)])),
    "try": (KEYS.shard(SHARD), lambda s, t: s.count_attempts(SHARD, t, {"m": 1})),
    "send, mailbox": (KEYS.mailbox(SHARD), lambda s, t: s.send(SHARD, "t@1", "e", "r", b"")),
    "send, requests": (KEYS.requests(SHARD), lambda s, t: s.send(SHARD, "t@1", "e", "r", b"")),
    "snapshot": (KEYS.snapshot(SHARD), lambda s, t: s.snapshot(SHARD, t, Snapshot(START, 1, b""))),
    "read snapshot": (KEYS.snapshot(SHARD), lambda s, t: s.read_snapshots([SHARD])),
    "archived": (KEYS.meta, lambda s, t: s.archived()),
    "mark archived": (KEYS.meta, lambda s, t: s.mark_archived(SHARD, t, START)),
    "trim, a holding snapshot": (KEYS.snapshot(KEEPER), lambda s, t: s.trim(SHARD, t, START, [KEEPER])),
    "read log": (KEYS.log, lambda s, t: s.read_log(START, 1)),
    "scan": (KEYS.log, lambda s, t: list(s.scan(START))),
    "wait": (KEYS.mailbox(SHARD), lambda s, t: s.wait(START, {SHARD: START}, 1, 10)),
}
_step = None


@pytest.mark.parametrize("name", WRONG_KEYS)
def test_a_key_of_the_wrong_type_is_an_error_and_nothing_is_written(
    name: str, store: RedisStore, redis_server: PrivateRedis
) -> None:
    global _step  # noqa: PLW0603 - the step has to be made before its keys are replaced
    key, call = WRONG_KEYS[name]
    token = begin(store)
    _step = fitting(store, token, 3, dead=(LETTER,))
    client = redis_server.client()
    client.delete(key)
    client.geoadd(key, (1.0, 2.0, "member")) if key != KEYS.requests(SHARD) else client.set(key, "text")
    before = state(client)
    with pytest.raises(StoreBroken) as caught:
        call(store, token)
    assert key in str(caught.value)
    assert "\n" not in str(caught.value)
    assert state(client) == before


def test_a_missing_log_is_an_error_and_nothing_is_written(store: RedisStore, redis_server: PrivateRedis) -> None:
    token = begin(store)
    client = redis_server.client()
    client.delete(KEYS.log)
    before = state(client)
    with pytest.raises(StoreBroken, match="is gone"):
        store.step(fitting(store, token))
    with pytest.raises(StoreBroken, match="is gone"):
        begin(store)
    assert state(client) == before


def test_a_log_without_its_meta_key_is_an_error(store: RedisStore, redis_server: PrivateRedis) -> None:
    begin(store)
    redis_server.client().delete(KEYS.meta)
    with pytest.raises(StoreBroken, match="does not tell the run"):
        begin(store)


@pytest.mark.parametrize("field", ["version", "log_cursor", "at", "schema"])
def test_an_invalid_field_of_a_shard_is_an_error_that_names_it(
    field: str, store: RedisStore, redis_server: PrivateRedis
) -> None:
    begin(store)
    redis_server.client().hset(KEYS.shard(SHARD), field, "many")
    with pytest.raises(StoreBroken, match=f"{field} is 'many'"):
        store.heads([SHARD])


# -- ids -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", ["1000000000000000-1", "18446744073709551615-18446744073709551615"])
def test_a_step_without_room_in_the_log_is_an_error_and_writes_nothing(
    last: str, store: RedisStore, redis_server: PrivateRedis
) -> None:
    token = begin(store)
    client = redis_server.client()
    client.xadd(KEYS.log, {"foreign": "entry"}, id=last)
    step = fitting(store, token)
    before = state(client)
    with pytest.raises(StoreBroken, match="room"):
        store.step(step)
    assert state(client) == before


def test_a_step_that_would_exhaust_the_ids_writes_nothing(store: RedisStore, redis_server: PrivateRedis) -> None:
    token = begin(store)
    client = redis_server.client()
    client.xadd(KEYS.log, {"foreign": "entry"}, id="99999999999999-999999999999990")
    before = state(client)
    with pytest.raises(StoreBroken, match="exhausted"):
        store.step(fitting(store, token, 10))
    assert state(client) == before
    assert isinstance(store.step(fitting(store, token, 9)), Committed)
    assert store.last() == Position(99999999999999, 999999999999999)


def test_large_ids_stay_exact(store: RedisStore, redis_server: PrivateRedis) -> None:
    token = begin(store)
    redis_server.client().xadd(KEYS.log, {"foreign": "entry"}, id="99999999999999-900719925474991")
    store.step(fitting(store, token, 3))
    assert numbers(store)[2:] == [900719925474992, 900719925474993, 900719925474994]


def test_a_command_without_room_in_the_mailbox_is_an_error_and_writes_nothing(
    store: RedisStore, redis_server: PrivateRedis
) -> None:
    begin(store)
    client = redis_server.client()
    client.xadd(KEYS.mailbox(SHARD), {"foreign": "mail"}, id="99999999999999999-0")
    before = state(client)
    with pytest.raises(StoreBroken, match="exhausted"):
        store.send(SHARD, "t@1", "e", "r", b"")
    assert state(client) == before


def test_positions_grow_although_the_clock_of_the_server_went_back(
    store: RedisStore, redis_server: PrivateRedis
) -> None:
    """The log's last entry is a day ahead of the server's clock."""
    token = begin(store)
    ahead = store.last().milliseconds + 86_400_000
    redis_server.client().xadd(KEYS.log, {"foreign": "entry"}, id=f"{ahead}-2")
    store.step(fitting(store, token, 2))
    assert [entry.position for entry in store.read_log(Position(ahead, 2), 10)] == [
        Position(ahead, 3),
        Position(ahead, 4),
    ]


def test_a_step_may_consume_a_trimmed_entry_but_not_one_that_the_log_never_had(
    store: RedisStore, redis_server: PrivateRedis
) -> None:
    """A trimmed entry counts as present; an entry that the log never had does not."""
    token = begin(store)
    last = store.last()
    redis_server.client().xtrim(KEYS.log, maxlen=0, approximate=False)
    lost = Position(last.milliseconds + 1, last.n + 1)
    assert isinstance(store.step(fitting(store, token, 0, new_log_cursor=lost)), Conflict)
    assert isinstance(store.step(fitting(store, token, 1, new_log_cursor=last)), Committed)
    assert numbers(store) == [2]


# -- entries that are not ours ---------------------------------------------------------------------------------------

FOREIGN: list[dict[bytes, bytes]] = [
    {b"hello": b"world"},
    {b"type": b"pod.X@1", b"data": b"\x80"},
    {b"type": b"pod.X@1", b"entity": b"\xff\xfe", b"subject": b"", b"actor": b"", b"cause": b"", b"data": b"\x80"},
    {b"entity": b"pod/a/b", b"type": b"pod.X@1", b"subject": b"", b"actor": b"", b"cause": b"", b"data": b"\x80"},
]


@pytest.mark.parametrize("fields", FOREIGN)
def test_a_foreign_entry_is_read_without_type_and_data(
    fields: dict[bytes, bytes], store: RedisStore, redis_server: PrivateRedis
) -> None:
    token = begin(store)
    client = redis_server.client()
    client.xadd(KEYS.log, fields)
    client.xadd(KEYS.mailbox(SHARD), fields)
    store.step(fitting(store, token))
    inputs = store.wait(START, {SHARD: START}, 10, 0)
    for entries in (list(inputs.log), list(store.scan(START))):
        assert [(entry.type, entry.data) for entry in entries[1:2]] == [("", b"")]
        # The foreign entry uses up a number: the next event has the following one.
        assert [entries[0].position.n, entries[2].position.n] == [1, 3]
    mail = inputs.mail[SHARD][0]
    assert (mail.type, mail.data) == ("", b"")


# -- a full server ---------------------------------------------------------------------------------------------------


def test_a_full_server_refuses_only_calls_that_add_to_the_log(store: RedisStore, redis_server: PrivateRedis) -> None:
    """Calls that add to the log fail; calls that free memory or keep the node alive succeed."""
    token, client = begin(store), redis_server.client()
    for turn in range(3):
        store.step(fitting(store, token, 100, step_id=f"before {turn}"))
    store.send(SHARD, "t@1", "e", "r1", b"")
    mail = store.wait(store.last(), {SHARD: START}, 1, 0).mail[SHARD][0]
    keeper = take(store, KEEPER)
    client.config_set("maxmemory", 1)
    before = store.last()
    for call in (
        lambda: store.step(fitting(store, token, 1)),
        lambda: store.step(fitting(store, token, 0, dead=(LETTER,))),
        lambda: store.send(SHARD, "t@1", "e", "r2", b""),
    ):
        with pytest.raises(StoreUnreachable, match="is full") as caught:
            call()
        assert caught.value.healing
    assert store.last() == before
    store.renew("p", "info", 60_000)
    consumed = fitting(store, token, 0, step_id="c", new_mail_cursor=mail.id, new_log_cursor=before)
    assert isinstance(store.step(consumed), Committed)
    assert isinstance(store.step(fitting(store, token, 1, step_id="k", even_if_full=True)), Committed)
    assert store.count_attempts(SHARD, token, {"m": 1}) is None
    assert store.snapshot(SHARD, token, Snapshot(before, 1, b"state"))
    assert store.mark_archived(KEEPER, keeper, before)
    assert store.trim(KEEPER, keeper, before, [SHARD]) in range(200, 302)
    assert isinstance(store.acquire(SHARD, token, "q", 1, proof="lock"), Acquired)
    store.retire("q", [(SHARD, "2:q")])
    assert store.heads([SHARD])[SHARD].token == ""
    assert isinstance(store.acquire(SHARD, "", "q", 1, proof="released"), Acquired)
    assert store.release(SHARD, "3:q", b"notes")
    client.config_set("maxmemory", 0)
    assert store.send(SHARD, "t@1", "e", "r2", b"") == "sent"


# -- servers that cannot serve ---------------------------------------------------------------------------------------


def test_a_missing_server_is_an_error_that_may_heal(tmp_path: object) -> None:
    store = unchecked(f"unix://{tmp_path}/none")
    with pytest.raises(StoreUnreachable, match="cannot be reached") as caught:
        store.check()
    assert caught.value.healing
    assert f"{tmp_path}/none" in str(caught.value)


def test_every_call_reports_a_refused_password_without_showing_it() -> None:
    calls: list[Callable[[RedisStore], object]] = [
        RedisStore.check,
        RedisStore.last,
        lambda store: store.renew("p", "", 1000),
        lambda store: store.step(Step(SHARD, "1:p", 0, "s", 1, START, START, START, START, (record(),))),
        lambda store: list(store.scan(START)),
        lambda store: store.wait(START, {}, 1, 1),
    ]
    with private_redis(requirepass="secret") as server:
        connect(server.url).close()
        for url in (f"unix://{server.socket}", f"unix://:wrong@{server.socket}"):
            for call in calls:
                with pytest.raises(StoreUnreachable, match="password") as caught:
                    call(unchecked(url))
                assert not caught.value.healing
                assert "wrong@" not in str(caught.value)
                assert "\n" not in str(caught.value)


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_server_that_may_evict_keys_is_refused(policy: str) -> None:
    with private_redis(maxmemory_policy=policy) as server:
        with pytest.raises(StoreUnreachable, match=f"{policy}.*noeviction") as caught:
            unchecked(server.url).check()
        assert not caught.value.healing


def test_no_append_only_file_is_a_warning_or_a_refusal() -> None:
    with private_redis(more=("--appendonly", "no")) as server:
        assert ["append-only" in text for text in unchecked(server.url).check()] == [True]
        with pytest.raises(StoreUnreachable, match="append-only"):
            unchecked(server.url, strict=True).check()


def test_a_server_that_loads_truncated_files_is_a_warning() -> None:
    """Loading truncated files is Redis's default. A user without permission to read the settings gets no warning."""
    with private_redis(more=("--aof-load-truncated", "yes")) as server:
        (warning,) = unchecked(server.url).check()
        assert "aof-load-truncated yes" in warning
        server.client().acl_setuser("default", enabled=True, nopass=True, commands=["-config"])
        assert unchecked(server.url).check() == []


def test_a_suitable_server_gives_no_warning(redis_server: PrivateRedis) -> None:
    assert unchecked(redis_server.url, strict=True).check() == []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listen(server: PrivateRedis) -> int:
    """Make a server listen on a free TCP port, which is returned. Tries another port if it has been taken in the
    meantime.
    """
    while True:
        port = free_port()
        try:
            server.client().config_set("port", port)
        except redis.ResponseError as error:
            if "Unable to listen" not in str(error):
                raise
        else:
            return port


def test_a_read_only_replica_is_refused(redis_server: PrivateRedis) -> None:
    master, port = redis_server, listen(redis_server)
    with private_redis(more=("--replicaof", f"127.0.0.1 {port}")) as replica:
        store = connect(f"redis://127.0.0.1:{port}")
        token = begin(store)
        with pytest.raises(StoreUnreachable, match="read-only replica"):
            unchecked(replica.url).check()
        # The master becomes a replica under a running store, as after a fail-over.
        step = fitting(store, token)
        master.client().replicaof("127.0.0.1", str(free_port()))
        with pytest.raises(StoreUnreachable, match="read-only replica") as caught:
            store.step(step)
        assert caught.value.healing
        store.close()


def test_a_server_that_is_too_old_is_refused() -> None:
    """The server is simulated by a socket that replies to INFO like an old server."""
    text = b"# Server\r\nredis_version:6.2.14\r\nrole:master\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            client, _ = listener.accept()
            with client:
                assert b"INFO" in client.recv(4096)
                client.sendall(b"$%d\r\n%s\r\n" % (len(text), text))

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(StoreUnreachable, match=r"6\.2\.14.*7\.0") as caught:
            unchecked(f"redis://127.0.0.1:{listener.getsockname()[1]}").check()
        thread.join()
    assert not caught.value.healing
