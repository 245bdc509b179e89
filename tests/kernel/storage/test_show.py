"""The server-side function that shows the log: it decodes every registered type and prints it as JSON."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgpack
import msgspec
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Command, Event
from tests.golden.samples import all_classes
from tests.kernel.storage.instances import instances, is_wide, plain, shown
from tests.kernel.storage.node import connect
from tests.support.redis.server import private_redis

CLASSES = all_classes()


@pytest.fixture(scope="module")
def client() -> Iterator[redis.Redis]:
    """A client of a server that has the functions. Tests write the entries to be shown to the stream `s`."""
    with private_redis(appendfsync="no") as server:
        connect(server.url).close()
        yield server.client()


def show(client: redis.Redis, *arguments: object) -> list[dict[str, Any]]:
    lines = client.fcall_ro("chronolet_show_1", 1, "s", *arguments)
    return [json.loads(line) for line in lines]


def as_redis_shows(client: redis.Redis, data: bytes) -> Any:
    client.xadd("s", {"type": "t@1", "data": data}, maxlen=1, approximate=False)
    (entry,) = show(client)
    return entry["data"]


def numbers_as_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: numbers_as_floats(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [numbers_as_floats(inner) for inner in value]
    return value if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def test_only_types_that_contain_a_pod_or_a_node_are_wide() -> None:
    assert len(CLASSES) > 50
    assert {registry.type_of(cls) for cls in CLASSES if is_wide(cls)} <= {
        "manifests.ApplyPods@1",
        "manifests.PodApplied@1",
        "pod.AdoptPod@1",
        "pod.PodAdopted@1",
        "pod.SpecAccepted@1",
        "pod.SuccessorAwaits@1",
        "qos.NodeDescribed@1",
    }


@pytest.mark.parametrize("cls", CLASSES, ids=registry.type_of)
@settings(
    max_examples=12,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_redis_decodes_every_type(client: redis.Redis, cls: type[Event] | type[Command], data: st.DataObject) -> None:
    message = data.draw(instances(cls))
    encoded = codec.encode(message)
    packed = msgpack.packb(plain(message))
    assert encoded == packed or is_wide(cls)
    assert msgpack.unpackb(encoded) == plain(message)
    assert codec.decode(registry.type_of(cls), packed, cls) == message
    assert codec.decode(registry.type_of(cls), encoded, cls) == message
    assert numbers_as_floats(as_redis_shows(client, encoded)) == shown(plain(message))


def test_entries_are_shown_with_their_fields_within_the_given_positions_and_count(client: redis.Redis) -> None:
    client.delete("s")
    for n in range(1, 31):
        client.xadd("s", {"type": "t@1", "entity": 'pod/"quoted"', "data": msgpack.packb({"n": n})}, id=f"1000-{n}")
    assert show(client)[0] == {"at": "1000-1", "type": "t@1", "entity": 'pod/"quoted"', "data": {"n": 1}}
    assert len(show(client)) == 10
    assert [entry["data"]["n"] for entry in show(client, "1000-5", "1000-7", 20)] == [5, 6, 7]
    assert show(client, "2000", "+", 5) == []
    assert len(show(client, "-", "+", 100000)) == 30


@pytest.mark.parametrize("text", ["a/b", "\\/", "\\\\/", "/\\", '"/"', "\\\\", "//"])
def test_slashes_and_backslashes_are_shown_correctly(text: str, client: redis.Redis) -> None:
    assert as_redis_shows(client, msgpack.packb({"text": text})) == {"text": text}
    (line,) = client.fcall_ro("chronolet_show_1", 1, "s")
    assert json.dumps(text).encode() in line


def test_at_most_a_thousand_entries_are_shown(client: redis.Redis) -> None:
    client.delete("s")
    for n in range(1, 1102):
        client.xadd("s", {"data": b"\x80"}, id=f"1000-{n}")
    assert len(show(client, "-", "+", 5000)) == 1000


UNDECODABLE = {
    "NaN": msgpack.packb(float("nan")),
    "infinity": msgpack.packb({"a": float("inf")}),
    "nothing": b"",
    "cut short": b"\x82\xa1a",
    "ext": msgpack.packb(msgpack.ExtType(5, b"x")),
    "a sparse list": msgpack.packb({1: "a", 1000000: "b"}),
    "reserved": b"\xc1",
}


@pytest.mark.parametrize("name", UNDECODABLE)
def test_data_that_cannot_be_decoded_is_marked(name: str, client: redis.Redis) -> None:
    assert list(as_redis_shows(client, UNDECODABLE[name])) == ["undecodable"]


def test_a_missing_key_has_no_entries_and_another_type_is_an_error(client: redis.Redis) -> None:
    assert client.fcall_ro("chronolet_show_1", 1, "absent") == []
    client.set("text", "x")
    with pytest.raises(redis.ResponseError, match="text is a string, expected a stream"):
        client.fcall_ro("chronolet_show_1", 1, "text")
    with pytest.raises(redis.ResponseError, match=re.compile("invalid stream id", re.IGNORECASE)):
        client.fcall_ro("chronolet_show_1", 1, "s", "x")


def test_a_type_that_redis_cannot_show_has_no_strategy() -> None:
    class Bad(Event, frozen=True, kw_only=True):
        raw: bytes

    with pytest.raises(TypeError, match="Redis can show"):
        instances(Bad).example()
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(b"\x81\xa3raw\x05", type=Bad)
