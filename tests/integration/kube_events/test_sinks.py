"""Each sink on its own, over real HTTP or with a real Redis, and with every kind of server failure."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from chronolet.adapters.kube_sinks import KubernetesSink, StreamReader, StreamSink, WebhookSink
from chronolet.adapters.kube_sinks.calls import HttpCaller
from chronolet.adapters.kube_sinks.kubernetes import Pace
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet.ports.kube_sinks import Outcome
from chronolet_schemas.envelope import START, Position
from chronolet_schemas.keys import Keys
from chronolet_schemas.kube_events import Post
from tests.support.kube_events.api_server import ApiServer
from tests.support.kube_events.faulty_server import UNREACHABLE, Fault, served
from tests.support.kube_events.webhook import Webhook
from tests.support.redis.server import PrivateRedis, RedisOptions, private_redis
from tests.support.scratch import HANG_SECONDS, wait_until

T0 = 1_700_000_000_000
PATIENCE = 0.5
ENDLESS: tuple[Fault, ...] = ("drip", "hang", "huge")
"""Faults that only the client's time-out ends."""
DELIVERED = Outcome(delivered=1)


def post(number: int = 1, *, name: str = "web-0", **fields: Any) -> Post:
    known: dict[str, Any] = {"object_kind": "Pod", "namespace": "shop", "severity": "Normal", "reason": "Started"}
    known |= {"object_name": name, "message": "m", "first": T0, "at": f"{T0 + number}-{number}"}
    return Post(name=f"{name}.1", **{**known, **fields})


# -- webhook -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def webhook() -> Iterator[Webhook]:
    server = Webhook(b"a secret")
    with served(server):
        yield server


def caller(url: str, seconds: float = HANG_SECONDS) -> HttpCaller:
    """Return a caller; its default time-out tolerates a server that stalls for a while."""
    return HttpCaller(url, seconds=seconds)


def reader(server: PrivateRedis) -> StreamReader:
    """Return a reader whose time-out tolerates a server that stalls for a while."""
    return StreamReader(server.url, "n", timeout_seconds=HANG_SECONDS)


def patience(fault: Fault) -> float:
    """Return the time-out to use with a fault, in seconds."""
    return PATIENCE if fault in ENDLESS else HANG_SECONDS


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_bytes(b"a secret\n")
    return str(path)


@pytest.fixture
def to_webhook(webhook: Webhook, secret: str) -> WebhookSink:
    return WebhookSink(caller(f"{webhook.url}/hook"), "node-1", secret)


def test_a_webhook_gets_the_complete_object_signed(webhook: Webhook, to_webhook: WebhookSink) -> None:
    sent = post(2, count=2, uid="u1", message="\x00\x1b[2J\u2028 \U0001f642", field_path="spec.containers{app}")
    assert to_webhook.deliver([sent]) == DELIVERED
    ((key, event),) = webhook.taken.items()
    assert key == f"node-1/web-0.1/2/{sent.at}"
    assert (event["message"], event["count"], event["involvedObject"]["uid"]) == (sent.message, 2, "u1")
    assert to_webhook.deliver([sent]) == DELIVERED  # the webhook recognizes it by its key
    assert (len(webhook.taken), webhook.repeated, webhook.unsigned) == (1, 1, 0)


def test_a_wrong_signature_is_refused_and_a_missing_secret_is_a_failure(webhook: Webhook, tmp_path: Path) -> None:
    unsigned = WebhookSink(caller(webhook.url), "node-1")
    assert unsigned.deliver([post()]).refused == (("web-0.1", "answered 401"),)
    assert webhook.unsigned == 1
    missing = WebhookSink(caller(webhook.url), "node-1", str(tmp_path / "none"))
    assert "No such file" in missing.deliver([post()]).failure


@pytest.mark.parametrize("fault", UNREACHABLE)
def test_an_incomplete_response_of_a_webhook_is_a_failure(
    webhook: Webhook, to_webhook: WebhookSink, secret: str, fault: Fault
) -> None:
    webhook.faults.append(fault)
    hasty = WebhookSink(caller(f"{webhook.url}/hook", patience(fault)), "node-1", secret)
    outcome = hasty.deliver([post()])
    assert outcome.failure
    assert outcome == Outcome(failure=outcome.failure)
    wait_until(lambda: webhook.met == {fault: 1}, f"a request with the fault {fault}")
    assert to_webhook.deliver([post()]) == DELIVERED


def test_the_status_of_a_webhook_decides(webhook: Webhook, to_webhook: WebhookSink) -> None:
    expected: list[tuple[Fault, Outcome]] = [
        ("empty", DELIVERED),
        ("html 502", Outcome(failure="answered 502")),
        ("later 503", Outcome(failure="answered 503")),
        ("move 307", Outcome(refused=(("web-0.1", "answered 307"),))),
        ("deny 403", Outcome(refused=(("web-0.1", "answered 403"),))),
    ]
    for fault, outcome in expected:
        webhook.faults.append(fault)
        assert to_webhook.deliver([post()]) == outcome, fault


def test_a_login_in_the_url_is_used_and_no_secret_part_is_reported(webhook: Webhook) -> None:
    with_login = webhook.url.replace("://", "://me:p%40ss@") + "/T0/key?token=t"
    sink = WebhookSink(caller(with_login), "node-1")
    refused = sink.deliver([post()])
    assert webhook.logins == ["Basic bWU6cEBzcw=="]
    webhook.faults.append("close")
    reported = f"{refused} {sink.deliver([post()])}"
    assert webhook.url in reported
    assert not any(word in reported for word in ("ss@", "T0", "token", "bWU6"))


def test_a_missing_webhook_is_a_failure() -> None:
    outcome = WebhookSink(caller("http://127.0.0.1:1/x"), "n").deliver([post()])
    assert outcome == Outcome(failure="http://127.0.0.1:1: [Errno 111] Connection refused")


def test_an_unknown_certificate_is_a_failure(webhook: Webhook) -> None:
    outcome = WebhookSink(caller(webhook.url.replace("http:", "https:")), "n").deliver([post()])
    assert "SSL" in outcome.failure


# -- API server --------------------------------------------------------------------------------------------------------
@pytest.fixture
def api() -> Iterator[ApiServer]:
    server = ApiServer("a token")
    with served(server):
        yield server
    assert server.wrong == []


@pytest.fixture
def token(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text("a token\n")
    return str(path)


@pytest.fixture
def to_api(api: ApiServer, token: str) -> KubernetesSink:
    return KubernetesSink(caller(api.url), "node-1", token)


def test_a_new_event_is_created_and_a_repeated_one_patched(api: ApiServer, to_api: KubernetesSink) -> None:
    assert to_api.deliver([post(1)]) == DELIVERED
    assert to_api.deliver([post(2, count=2, message="newer")]) == DELIVERED
    assert [(method, status) for method, _, status in api.calls] == [("POST", 201), ("PATCH", 200)]
    (event,) = api.events.values()
    assert (event["count"], event["message"], event["reason"]) == (2, "newer", "Started")
    assert (event["firstTimestamp"], event["source"]["host"]) == ("2023-11-14T22:13:20Z", "node-1")


def test_an_event_lost_by_the_server_is_created_again(api: ApiServer, to_api: KubernetesSink) -> None:
    assert to_api.deliver([post(7, count=7)]) == DELIVERED
    assert [(method, status) for method, _, status in api.calls] == [("PATCH", 404), ("POST", 201)]
    assert [event["count"] for event in api.events.values()] == [7]


def test_events_of_nodes_and_of_unusual_names_are_accepted(api: ApiServer, to_api: KubernetesSink) -> None:
    node = post(name="node-1", object_kind="Node", namespace="")
    unusual = post(object_name="Not_A_DNS:name/../x", namespace="shop")
    assert [to_api.deliver([one]) for one in (node, unusual)] == [DELIVERED] * 2
    assert {namespace for namespace, _ in api.events} == {"default", "shop"}
    assert api.events["default", "node-1.1"]["involvedObject"]["uid"] == "node-1"


@pytest.mark.parametrize("fault", [*UNREACHABLE, "html 502", "later 503", "empty"])
def test_an_inconclusive_response_of_an_api_server_is_a_failure(
    api: ApiServer, to_api: KubernetesSink, token: str, fault: Fault
) -> None:
    api.faults.append(fault)
    hasty = KubernetesSink(caller(api.url, patience(fault)), "node-1", token)
    assert hasty.deliver([post()]).failure
    wait_until(lambda: api.met == {fault: 1}, f"a request with the fault {fault}")
    assert to_api.deliver([post()]) == DELIVERED


def test_a_status_of_an_api_server_is_final(api: ApiServer, to_api: KubernetesSink) -> None:
    api.faults.append("deny 403")
    assert to_api.deliver([post()]).refused == (("web-0.1", "403 Forbidden: not you"),)
    assert to_api.deliver([post()]) == DELIVERED
    assert to_api.deliver([post()]) == Outcome(known=1)
    stranger = KubernetesSink(caller(api.url), "node-1")
    assert stranger.deliver([post()]).refused == (("web-0.1", "401 Unauthorized: "),)


def test_with_a_malformed_token_no_request_is_made(api: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("two\nlines")
    outcome = KubernetesSink(caller(api.url), "node-1", str(tmp_path / "bad")).deliver([post()])
    assert outcome.refused[0][1].startswith("cannot be put into a request: ")
    assert api.requests == 0


def test_requests_to_an_api_server_are_rate_limited(api: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a token")
    slow = KubernetesSink(caller(api.url), "node-1", str(tmp_path / "token"), Pace(20, 5))
    began = time.monotonic()
    for number in range(15):
        assert slow.deliver([post(name=f"web-{number}")]) == DELIVERED
    assert time.monotonic() - began >= 10 / 20


# -- Redis -------------------------------------------------------------------------------------------------------------
KEY = Keys("n").kube_events


def to_stream(server: PrivateRedis, *, keep: int = 10**14, length: int = 1_000) -> StreamSink:
    return StreamSink(server.url, "n", keep_milliseconds=keep, length=length, timeout_seconds=HANG_SECONDS)


def entries(client: redis.Redis) -> list[Any]:
    found: Any = client.xrange(KEY)
    return list(found)


def ids(client: redis.Redis) -> list[str]:
    return [at.decode() for at, _ in entries(client)]


def test_the_stream_has_each_event_once_under_its_position(redis_server: PrivateRedis) -> None:
    sink, client = to_stream(redis_server), redis_server.client()
    some = [post(number, count=number) for number in range(1, 6)]
    assert sink.deliver(some[:3]) == Outcome(delivered=3)
    assert sink.deliver(some) == Outcome(delivered=5)  # the first three again
    assert ids(client) == [one.at for one in some]
    ((_, fields), *_) = entries(client)
    assert json.loads(fields[b"event"])["metadata"]["annotations"] == {"chronolet/position": some[0].at}
    events = reader(redis_server)
    assert [event["count"] for _, event in events.read(START, 100)] == [1, 2, 3, 4, 5]
    assert [at for at, _ in events.read(Position.parse(some[3].at), 100, 50)] == [Position.parse(some[4].at)]
    assert events.read(Position.parse(some[4].at), 100, 50) == []
    events.close()


def test_the_stream_is_trimmed_by_age_and_size(redis_server: PrivateRedis) -> None:
    client = redis_server.client()
    now = int(client.time()[0]) * 1000
    old = [post(number, at=f"{now - 10_000_000 + number}-{number}") for number in range(1, 4)]
    new = [post(number, at=f"{now + number}-{number}") for number in range(4, 10)]
    assert to_stream(redis_server, keep=5_000_000).deliver([*old, *new]).delivered == 9
    assert ids(client) == [one.at for one in new]
    assert to_stream(redis_server, length=4).deliver([post(20, at=f"{now + 20}-20")]).delivered == 1
    assert len(ids(client)) == 4


def test_errors_of_the_server_are_failures() -> None:
    with private_redis(RedisOptions(maxmemory=1, maxmemory_policy="noeviction")) as full:
        assert "maxmemory" in to_stream(full).deliver([post()]).failure
    with private_redis() as server:
        server.client().set(KEY, "a string")
        assert "WRONGTYPE" in to_stream(server).deliver([post()]).failure
        with pytest.raises(StoreBroken, match="WRONGTYPE"):
            reader(server).read(START, 1)
        server.client().delete(KEY)
        server.client().xadd(KEY, {"event": "no JSON"})
        with pytest.raises(StoreBroken, match="holds no Event object"):
            reader(server).read(START, 1)
        sink = to_stream(server)
        server.kill9()
        assert "sock" in sink.deliver([post(10**9)]).failure
        with pytest.raises(StoreUnreachable):
            reader(server).read(START, 1)


def test_the_largest_event_is_accepted_by_all_sinks(
    redis_server: PrivateRedis, webhook: Webhook, to_webhook: WebhookSink, api: ApiServer, to_api: KubernetesSink
) -> None:
    large = post(message="\U0001f642" * 4096)
    assert to_stream(redis_server).deliver([large]) == DELIVERED
    assert to_webhook.deliver([large]) == DELIVERED
    assert to_api.deliver([large]) == DELIVERED
    assert {event["message"] for event in (*webhook.taken.values(), *api.events.values())} == {large.message}
    assert msgspec.json.decode(entries(redis_server.client())[0][1][b"event"])["message"] == large.message
