"""Delivery of KubeEvents from the log to sinks that fail in every way. Every post is either delivered or given up, and
every recorded event is either posted or suppressed, even after kill -9.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet_schemas import kube_events
from tests.integration.kube_events.support import NODE, Events, names, node, recorded
from tests.support import scratch
from tests.support.kube_events.api_server import ApiServer
from tests.support.kube_events.faulty_server import Fault, served
from tests.support.kube_events.webhook import Webhook
from tests.support.redis.server import PrivateRedis

FAULTS: tuple[Fault, ...] = (
    *("close", "reset", "half", "nonsense", "huge", "empty", "html 502", "later 503", "move 307", "deny 403"),
)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    server = Webhook()
    with served(server):
        yield server


def keys(events: Events) -> list[str]:
    """Return the idempotency key with which the webhook receives each post."""
    return [f"{NODE}/{post.name}/{post.count}/{post.at}" for post in events.posts()]


def test_delivery_to_sinks_that_fail_in_every_way(redis_server: PrivateRedis, tmp_path: Path, webhook: Webhook) -> None:
    api = ApiServer()
    objects = 120
    with (
        served(api),
        node(redis_server, tmp_path / "root", event_webhook_url=webhook.url, event_api_server=api.url) as events,
    ):
        for server in (webhook, api):
            server.faults.extend(fault for fault in FAULTS * 3)
        events.start()
        for number in range(objects):
            # Half of the events are recorded twice; the second time, the API server gets a patch.
            events.record(recorded(number), *([recorded(number)] if number % 2 else []))
        events.wait_settled("redis", "webhook", "kubernetes")
        posted = keys(events)
        assert len(posted) == len(set(posted)) == events.count == objects * 3 // 2
        assert [at for at, _ in events.stream()] == [post.at for post in events.posts()]
        for server, sink, refused in ((webhook, "webhook", 6), (api, "kubernetes", 3)):
            assert server.met.keys() == set(FAULTS)
            found = events.balance(sink)
            assert found["failed"] >= 20
            assert found["given up"] == found["given up: refused"] >= refused
        # Only refused posts are missing. An empty response counts as a delivery, although the webhook did not store the
        # post.
        assert len(webhook.taken) == events.balance("webhook")["delivered"] - webhook.met["empty"]
        assert set(webhook.taken) < set(posted)
        assert api.wrong == []
        counts = {name: event["count"] for (_, name), event in api.events.items()}
        assert counts.items() <= set(names(events.posts()))
        assert len(counts) >= objects - events.balance("kubernetes")["given up"]


def test_posts_beyond_the_backlog_of_a_failing_sink_are_given_up(redis_server: PrivateRedis, tmp_path: Path) -> None:
    settings = {"event_webhook_url": "http://127.0.0.1:1/", "event_backlog": 100, "pause": 20}
    with node(redis_server, tmp_path / "root", **settings) as events:
        events.start()
        for begin in range(0, 600, 50):
            events.record(*(recorded(number) for number in range(begin, begin + 50)))
        events.wait_settled("redis")
        scratch.wait_until(
            lambda: events.balance("webhook")["given up: tries"] > 0, "a post given up after its attempts"
        )
        found = events.balance("webhook")
        by_attempts = found["given up: tries"]
        assert found["failed"] >= 11 * by_attempts, "each had twelve attempts"
        # The more slowly events are recorded, the more of them have used up their attempts by now.
        assert found["given up: backlog"] == found["given up"] - by_attempts
        assert 0 < found["posted"] - found["given up"] <= 100  # the backlog
        assert len(events.stream()) == 600


def test_events_recorded_without_an_agent_are_delivered_by_the_next_one(
    redis_server: PrivateRedis, tmp_path: Path, webhook: Webhook
) -> None:
    with node(redis_server, tmp_path / "root", event_webhook_url=webhook.url) as events:
        events.start()
        events.record(recorded(1))
        events.wait_settled("webhook")
        events.kill9()
        events.record(recorded(1), recorded(2))
        events.start()
        events.wait_settled("redis", "webhook")
        assert [post.count for post in events.posts()] == [1, 2, 1]  # the counts are not lost with the process
        assert sorted(webhook.taken) == sorted(keys(events))


def test_a_hanging_sink_does_not_delay_others(redis_server: PrivateRedis, tmp_path: Path, webhook: Webhook) -> None:
    webhook.faults.append("hang")
    with node(redis_server, tmp_path / "root", event_webhook_url=webhook.url) as events:
        events.start()
        for begin in range(0, 300, 10):
            events.record(*(recorded(number) for number in range(begin, begin + 10)))
        events.wait_settled("redis")
        scratch.wait_until(lambda: webhook.requests > 0, "the hanging request")
        found = events.balance("webhook")
        assert (webhook.met["hang"], webhook.requests) == (1, 1)
        assert (found["posted"], found["delivered"], found["given up"]) == (300, 0, 0)


def test_unusual_events_are_delivered_and_those_of_a_removed_namespace_refused(
    redis_server: PrivateRedis, tmp_path: Path, webhook: Webhook
) -> None:
    """One event has a megabyte of text with control characters, one is in a removed namespace, and one is ordinary."""
    unusual = "\x00\x1b[2J\r\n\t\u2028\x7f" + "x" * 1_000_000
    api = ApiServer(namespaces={"shop"})
    with (
        served(api),
        node(redis_server, tmp_path / "root", event_webhook_url=webhook.url, event_api_server=api.url) as events,
    ):
        events.start()
        events.record(recorded(1, message=unusual), recorded(2, namespace="gone"), recorded(3))
        events.wait_settled("redis", "webhook", "kubernetes")
        whole = [event for event in events.recorded() if event.name == "web-1"]
        assert [event.message for event in whole] == [unusual]
        shown = [event["message"] for _, event in events.stream()]
        assert shown[0] == f"{unusual[:4093]}..."
        assert [event["message"] for event in webhook.taken.values()] == shown
        assert [event["message"] for event in api.events.values()] == [shown[0], shown[2]]
        given_up = [fact for fact in events.facts() if isinstance(fact, kube_events.GivenUp)]
        assert [(fact.sink, fact.count, fact.error) for fact in given_up] == [
            ("kubernetes", 1, '404 NotFound: namespaces "gone" not found')
        ]
        assert api.wrong == []


def test_a_flood_with_kills_is_delivered_completely(
    redis_server: PrivateRedis, tmp_path: Path, webhook: Webhook
) -> None:
    """Ten thousand events are recorded: a thousand about as many objects, the others about a single object; the spam
    filter suppresses most of these. The agent is killed twice, then the redis-server.
    """
    api = ApiServer()
    settings = {
        "event_webhook_url": webhook.url,
        "event_api_server": api.url,
        "event_qps": 0,
        "event_backlog": 100_000,
        "event_stream_length": 100_000,
    }
    with served(api), node(redis_server, tmp_path / "root", **settings) as events:
        events.start()
        flood = threading.Thread(target=_flood, args=(events,))
        flood.start()
        for count, killed in ((100, events), (300, events), (500, redis_server)):
            scratch.wait_until(lambda count=count: len(webhook.taken) > count, f"{count} at the webhook", 60)  # type: ignore[misc]
            killed.kill9()
            killed.start()
        flood.join()
        events.wait_settled("redis", "webhook", "kubernetes", seconds=90)
        posts, posted, found = events.posts(), keys(events), events.balance("webhook")
        assert found["heard"] == 10_000 == found["suppressed"] + found["posted"]
        assert found["posted"] == len(posted) == len(set(posted)) == 1_000 + 25
        assert found["given up"] == 0
        assert sorted(webhook.taken) == sorted(posted)  # all arrived; repeats were recognized by their keys
        assert [at for at, _ in events.stream()] == [post.at for post in posts]
        assert {name: event["count"] for (_, name), event in api.events.items()} == dict(names(posts))
        assert api.wrong == []
        # The API server knows posts that are sent again after a kill: its response was received but not recorded.
        at_api = events.balance("kubernetes")
        assert at_api["delivered"] + at_api["given up: known"] == found["posted"]
        assert sum(call.status == 409 for call in api.calls) <= 60  # at most a batch per kill
        assert {call.status for call in api.calls} <= {200, 201, 409}
        assert found["correlated"] < 2_000  # one Correlated event may cover a hundred KubeEvents


def _flood(events: Events) -> None:
    numbers = itertools.count()
    for _ in range(100):
        some = [recorded(next(numbers)) for _ in range(10)]
        events.record(*some, *[recorded(-1, name="loud", message="again")] * 90)
