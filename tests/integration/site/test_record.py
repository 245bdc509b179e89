"""The record of a node's site on a real redis-server: written once, with its event, or not at all."""

import msgspec
import pytest

from chronolet.kernel.storage.redis.sites import Refused, Site
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet_schemas.envelope import START
from chronolet_schemas.keys import Keys, Shard
from tests.integration.site.support import NODE, RUN, Log
from tests.support.redis.server import PrivateRedis

ONE = Site(machine_id="m1", engine_id="E", engine_root="/var/lib/docker")
TWO = Site(machine_id="m2", engine_id="E", engine_root="/var/lib/docker")
POD = Shard("pod")


def test_a_site_is_recorded_once_with_its_event(log: Log) -> None:
    assert log.sites.recorded() == (RUN, None)
    assert log.sites.record(RUN, None, ONE, "process/a")
    assert log.sites.recorded() == (RUN, ONE)
    assert log.sites.record(RUN, None, ONE, "process/b"), "a repeat, as after a lost reply"
    (event,) = log.recorded()
    assert (event.node, event.machine_id, event.engine_id, event.engine_root) == (NODE, "m1", "E", "/var/lib/docker")
    assert [entry.position.n for entry in log.store.scan(START)] == [1, 2]


def test_of_two_processes_only_the_first_records(log: Log) -> None:
    assert log.sites.record(RUN, None, ONE, "process/a")
    assert not log.sites.record(RUN, None, TWO, "process/b")
    assert log.sites.recorded().site == ONE
    assert len(log.recorded()) == 1


def test_a_move_records_the_former_site(log: Log) -> None:
    log.sites.record(RUN, None, ONE, "process/a")
    assert log.sites.record(RUN, ONE, TWO, "cli/1")
    event = log.recorded()[-1]
    assert (event.machine_id, event.former_machine_id, event.former_engine_root) == ("m2", "m1", "/var/lib/docker")


def test_a_move_is_refused_if_a_shard_was_acquired_meanwhile(log: Log) -> None:
    log.sites.record(RUN, None, ONE, "process/a")
    former = log.acquire(POD, "a")
    log.acquire(POD, "a")
    assert not log.sites.record(RUN, ONE, TWO, "cli/1", {POD: former})
    assert log.sites.recorded().site == ONE
    now = log.store.heads([POD])[POD].token
    assert log.sites.record(RUN, ONE, TWO, "cli/1", {POD: now, Shard("pleg"): ""})


def test_nothing_is_recorded_in_another_run(log: Log) -> None:
    assert not log.sites.record("other", None, ONE, "process/a")
    assert log.recorded() == []


def test_the_functions_are_loaded_again_after_a_flush(log: Log, redis_server: PrivateRedis) -> None:
    redis_server.client().execute_command("FUNCTION", "FLUSH")
    assert log.sites.record(RUN, None, ONE, "process/a")


@pytest.mark.parametrize("value", [b"garbage", b"{}", b'{"machine_id": 1}'])
def test_a_damaged_record_is_an_error_that_names_the_field(log: Log, redis_server: PrivateRedis, value: bytes) -> None:
    redis_server.client().hset(Keys(NODE).meta, "site", value)
    with pytest.raises(StoreBroken, match="field site: found"):
        log.sites.recorded()


def test_a_key_of_the_wrong_type_is_refused_without_a_write(log: Log, redis_server: PrivateRedis) -> None:
    before = log.store.last()
    redis_server.client().set(Keys(NODE).shard(POD), "text")
    with pytest.raises(StoreBroken, match="expected a hash"):
        log.sites.record(RUN, None, ONE, "process/a", {POD: ""})
    assert log.store.last() == before


def test_refusals_are_published_and_withdrawn(log: Log, redis_server: PrivateRedis) -> None:
    refused = Refused(kinds=("pod",), reason="elsewhere")
    log.sites.refuse("a", refused)
    redis_server.client().hset(Keys(NODE).refusals, "b", msgspec.json.encode([1]))
    assert log.sites.refusals() == {"a": refused}
    log.store.renew("a", "", 60_000)
    for process in ("dead", "c"):
        log.sites.refuse(process, refused)
    assert log.sites.refusals() == {"a": refused, "c": refused}, "the dead process and the damaged entry are gone"
    log.sites.refuse("c", None)
    log.sites.refuse("a", None)
    assert log.sites.refusals() == {}


def test_an_unreachable_server_is_reported(log: Log, redis_server: PrivateRedis) -> None:
    redis_server.kill9()
    with pytest.raises(StoreUnreachable):
        log.sites.recorded()
    with pytest.raises(StoreUnreachable):
        log.sites.record(RUN, None, ONE, "process/a")
