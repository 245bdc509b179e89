"""`chronolet_pod_1`: which events are about a pod, and what led to each."""

from __future__ import annotations

import pytest
import redis

from tests.kernel.storage.show.replies import KEYS, MILLISECONDS, add, fill, pod


def position(number: int) -> str:
    return f"{MILLISECONDS + number}-{number}"


def test_the_events_of_a_pod_and_those_of_others_about_it_are_shown_newest_first(client: redis.Redis) -> None:
    add(client, 1, entity="pod/default/web")
    add(client, 2, entity="pod/default/web-2", data={"pod": "default/web-2"})
    add(client, 3, entity="pleg/node-1", data={"pod": "default/web", "exit_code": 137})
    add(client, 4, entity="pleg/node-1", data={"pod": "default/other", "message": "default/web is not about it"})
    add(client, 5, entity="pod/shop/web", data={"pod": "shop/web"})
    add(client, 6, entity="pod/default/web")
    kube_event = {"object_kind": "Pod", "namespace": "default", "name": "web"}
    add(client, 7, entity="prober/u/app", data=kube_event)
    add(client, 8, entity="prober/u/app", data=kube_event | {"namespace": "shop"})
    add(client, 9, entity="prober/u/app", data=kube_event | {"namespace": ["default"]})
    add(client, 10, entity="node/web", data={"object_kind": "Node", "name": "web"})
    assert pod(client, "default/web").numbers == [7, 6, 3, 1]
    assert pod(client, "web").numbers == [7, 6, 3, 1]
    assert pod(client, "shop/web").numbers == [8, 5]
    assert pod(client, "web").lines[2]["data"]["exit_code"] == 137


def test_a_line_names_what_led_to_it_nearest_first(client: redis.Redis) -> None:
    add(client, 1, type="manifests.PodApplied@1", entity="manifests/node", cause="apply/7")
    add(client, 2, type="pod.SpecAccepted@1", cause=position(1))
    add(client, 3, type="pod.ContainerStarted@1", subject="container/app", cause=position(2))
    (newest, *_) = pod(client, "web").lines
    assert newest["causes"] == [
        {
            "position": position(2),
            "time": "2025-11-27T13:31:07.002Z",
            "type": "pod.SpecAccepted@1",
            "entity": "pod/default/web",
            "subject": "",
        },
        {
            "position": position(1),
            "time": "2025-11-27T13:31:07.001Z",
            "type": "manifests.PodApplied@1",
            "entity": "manifests/node",
            "subject": "",
        },
        {"request": "apply/7"},
    ]


def test_a_cause_that_was_trimmed_a_long_chain_and_a_circle_end_the_list(client: redis.Redis) -> None:
    add(client, 1, cause="1-1")
    for number in range(2, 9):
        add(client, number, cause=position(number - 1))
    add(client, 9, cause=position(9))
    add(client, 10)
    lines = dict(zip(pod(client, "web").numbers, pod(client, "web").of("causes"), strict=True))
    assert lines[1] == [{"position": "1-1", "gone": True}]
    assert [cause["position"] for cause in lines[8]] == [position(number) for number in (7, 6, 5, 4, 3, 2)]
    assert lines[8][5] == {"position": position(2), "further": True}
    assert len(lines[9]) == 6
    assert lines[10] == []


ODD_NAMES = ["we%b.*", "web\x00", "ü-web", 'w"eb', "web\\n", "we[b]", "LINES"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_with_odd_characters_is_compared_as_it_is(client: redis.Redis, name: str) -> None:
    add(client, 1, entity=f"pod/default/{name}")
    add(client, 2, entity="pleg/node-1", data={"pod": f"default/{name}"})
    add(client, 3)
    assert pod(client, name).numbers == [2, 1]
    assert pod(client, f"default/{name}").of("entity") == ["pleg/node-1", f"pod/default/{name}"]


def test_an_unknown_pod_has_no_lines_and_an_empty_name_is_refused(client: redis.Redis) -> None:
    add(client, 1)
    assert pod(client, "absent").lines == []
    assert pod(client, "/").lines == []
    for arguments in ((), ("",)):
        with pytest.raises(redis.ResponseError, match="chronolet_pod_1: no pod was given, expected namespace/name"):
            pod(client, *arguments)
    with pytest.raises(redis.ResponseError, match="unknown word"):
        pod(client, "web", "REV")
    with pytest.raises(redis.ResponseError, match='LINES is "201", expected a number from 0 to 200'):
        pod(client, "web", "LINES", 201)


def test_a_missing_log_is_reported_and_another_type_is_refused(client: redis.Redis) -> None:
    assert pod(client, "web").summary["exists"] is False
    client.hset(KEYS.log, "a", "b")
    with pytest.raises(redis.ResponseError, match="is a hash, expected a stream"):
        pod(client, "web")


def test_undecodable_entries_about_the_pod_are_marked(client: redis.Redis) -> None:
    add(client, 1)
    client.xadd(KEYS.log, {"entity": "pod/default/web", "data": b"\xc1"}, id=position(2))
    client.xadd(KEYS.log, {"entity": "pleg/node-1", "data": b"\xc1default/web"}, id=position(3))
    client.xadd(KEYS.log, {"data": b"\xabdefault/web"}, id=position(4))
    client.xadd(KEYS.log, {"foreign": "default/web"}, id=position(5))
    reply = pod(client, "web")
    assert reply.numbers == [2, 1]
    assert list(reply.lines[0]["data"]) == ["undecodable"]


@pytest.mark.parametrize(("lines", "read"), [(1, 10_000), (200, 1), (7, 33)])
def test_cursors_continue_without_loss_or_repetition(client: redis.Redis, lines: int, read: int) -> None:
    fill(client, range(1, 100))
    fill(client, range(100, 200), entity="pod/default/other")
    fill(client, range(200, 300))
    shown, more = list[int](), ()
    while True:
        reply = pod(client, "web", "LINES", lines, "READ", read, *more)
        assert len(reply.lines) <= lines
        assert reply.summary["read"] <= read
        shown += reply.numbers
        more = ("TO", reply.summary["next"])
        if not reply.summary["more"]:
            break
    assert shown == [*range(299, 199, -1), *range(99, 0, -1)]


def test_at_most_ten_thousand_entries_are_read_per_call(client: redis.Redis) -> None:
    add(client, 1)
    fill(client, range(2, 20_002), entity="pod/default/other")
    first = pod(client, "web")
    assert (first.lines, first.summary["read"], first.summary["more"]) == ([], 10_000, True)
    second = pod(client, "web", "TO", first.summary["next"])
    assert (second.lines, second.summary["read"]) == ([], 10_000)
    third = pod(client, "web", "TO", second.summary["next"])
    assert (third.numbers, third.summary["more"]) == ([1], False)
