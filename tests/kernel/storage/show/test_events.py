"""`chronolet_show_2`: which entries it shows, how many it reads, where it continues, and its errors."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest
import redis

from tests.golden.write import FOLDER
from tests.kernel.storage.show.replies import KEYS, MILLISECONDS, Reply, add, fill, pod, show


def refusal(client: redis.Redis, *arguments: object, key: str = KEYS.log) -> str:
    with pytest.raises(redis.ResponseError) as caught:
        show(client, *arguments, key=key)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def all_pages(client: redis.Redis, *arguments: object, backward: bool = False) -> list[Reply]:
    """Return the replies until one has nothing to follow. Each call continues at the cursor of the previous reply."""
    replies = [show(client, *arguments)]
    while replies[-1].summary["more"]:
        assert len(replies) < 1000
        replies.append(show(client, *arguments, "TO" if backward else "FROM", replies[-1].summary["next"]))
    return replies


def test_a_line_has_position_time_and_the_entrys_fields(client: redis.Redis) -> None:
    at = add(client, 5, type="pod.ContainerExited@1", subject="container/app", cause="1-1", data={"b": 2, "a": [1]})
    (line,) = show(client).lines
    assert line == {
        "position": at,
        "time": "2025-11-27T13:31:07.005Z",
        "type": "pod.ContainerExited@1",
        "entity": "pod/default/web",
        "subject": "container/app",
        "actor": "pod/0#1",
        "cause": "1-1",
        "data": {"a": [1], "b": 2},
    }


def test_the_summary_says_where_the_stream_begins_and_how_much_was_trimmed(client: redis.Redis) -> None:
    fill(client, range(1, 31))
    client.xtrim(KEYS.log, minid=f"{MILLISECONDS + 11}-11", approximate=False)
    assert show(client, "LINES", 0).summary == {
        "next": "-",
        "more": True,
        "read": 0,
        "lines": 0,
        "exists": True,
        "entries": 20,
        "begins": f"{MILLISECONDS + 11}-11",
        "begins_time": "2025-11-27T13:31:07.011Z",
        "ends": f"{MILLISECONDS + 30}-30",
        "ends_time": "2025-11-27T13:31:07.030Z",
        "trimmed": 10,
    }


def test_a_missing_stream_has_no_lines_and_a_summary_that_says_so(client: redis.Redis) -> None:
    reply = show(client)
    assert reply.lines == []
    assert (reply.summary["exists"], reply.summary["more"], reply.summary["begins"]) == (False, False, None)


def test_an_emptied_stream_says_that_everything_is_gone(client: redis.Redis) -> None:
    fill(client, range(1, 4))
    client.xtrim(KEYS.log, maxlen=0, approximate=False)
    summary = show(client).summary
    assert (summary["exists"], summary["entries"], summary["begins"], summary["trimmed"]) == (True, 0, None, 3)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("TYPE", "pod.Started"), [1, 4]),
        (("TYPE", "pod.Started@2"), [4]),
        (("type", "pod.*", "LINES", 2), [1, 3]),
        (("TYPE", "pleg.Died", "TYPE", "pod.E*"), [2, 3]),
        (("ENTITY", "pod/*/web"), [1, 3]),
        (("SUBJECT", "container/*"), [1, 2]),
        (("SUBJECT", "container/ap?"), [1]),
        (("SUBJECT", ""), [4]),
        (("CAUSE", f"{MILLISECONDS + 2}-2"), [3]),
        (("CAUSE", "apply/*"), [4]),
        (("ENTITY", "pod/*", "CAUSE", "apply/*"), [4]),
        (("ENTITY", "pleg/*", "CAUSE", "apply/*"), []),
        (("TYPE", "Started"), []),
        (("REV",), [4, 3, 2, 1]),
        (("REV", "LINES", 1), [4]),
        (("FROM", f"{MILLISECONDS + 2}-2", "TO", f"{MILLISECONDS + 3}"), [2, 3]),
        (("FROM", f"({MILLISECONDS + 2}-2"), [3, 4]),
        (("FROM", "2025-11-27T13:31:07.002Z", "TO", "2025-11-27T13:31:07.003Z"), [2, 3]),
        (("FROM", "2025-11-27T13:31:08Z"), []),
        (("FROM", "2025-11-27T13:31Z"), [1, 2, 3, 4]),
        (("FROM", "2025-11-27", "TO", "2025-11-28"), [1, 2, 3, 4]),
        (("FROM", "+"), []),
    ],
)
def test_entries_are_chosen(client: redis.Redis, arguments: tuple[object, ...], expected: list[int]) -> None:
    add(client, 1, type="pod.Started@1", subject="container/app", cause="1-1")
    add(client, 2, type="pleg.Died@1", entity="pleg/node-1", subject="container/app-2")
    add(client, 3, type="pod.Ended@1", subject="x", cause=f"{MILLISECONDS + 2}-2")
    add(client, 4, type="pod.Started@2", entity="pod/a/web2", cause="apply/7")
    assert show(client, *arguments).numbers == expected


def test_latest_shows_the_newest_selected_entry_about_each_subject(client: redis.Redis) -> None:
    for number, entity, subject in (
        (1, "pod/a", "container/app"),
        (2, "pod/a", "container/log"),
        (3, "pod/b", "container/app"),
        (4, "pod/a", "container/app"),
        (5, "pod/b", ""),
    ):
        add(client, number, entity=entity, subject=subject)
    assert show(client, "LATEST").numbers == [5, 4, 3, 2]
    assert show(client, "LATEST", "SUBJECT", "container/*", "LINES", 1).numbers == [4]
    assert show(client, "LATEST", "TO", f"{MILLISECONDS + 3}").numbers == [3, 2, 1]


@pytest.mark.parametrize("last", ["pod.PodEnded@1", "pod.PodAdopted@2"])
def test_latest_shows_nothing_from_before_a_pods_end_or_adoption(client: redis.Redis, last: str) -> None:
    add(client, 1, subject="container/app")
    add(client, 2, type=last)
    add(client, 3, entity="pod/default/other", subject="container/app")
    assert show(client, "LATEST").numbers == [3, 2]
    assert show(client, "LATEST", "SUBJECT", "container/*").numbers == [3], "even if that event is not selected"
    add(client, 4, subject="container/app")
    add(client, 5, subject="container/log")
    assert show(client, "LATEST", "TYPE", "pod.Happened").numbers == [5, 4, 3]
    assert show(client, "REV", "TYPE", "pod.Happened").numbers == [5, 4, 3, 1]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(("lines", "read"), [(1, 10000), (7, 1), (1000, 3), (10, 250), (250, 251)])
def test_cursors_continue_without_loss_or_repetition(
    client: redis.Redis, lines: int, read: int, *, backward: bool
) -> None:
    fill(client, range(1, 301))
    fill(client, range(301, 601), name="other.Happened@1")
    arguments = ("TYPE", "pod.*", "LINES", lines, "READ", read, *(("REV",) if backward else ()))
    replies = all_pages(client, *arguments, backward=backward)
    assert all(len(reply.lines) <= lines and reply.summary["read"] <= read for reply in replies)
    assert len(replies) > 1
    shown = [number for reply in replies for number in reply.numbers]
    assert shown == (list(range(300, 0, -1)) if backward else list(range(1, 301)))


def test_the_last_cursor_continues_with_what_arrives_later(client: redis.Redis) -> None:
    fill(client, range(1, 4))
    first = show(client)
    assert (first.summary["more"], first.numbers) == (False, [1, 2, 3])
    assert show(client, "FROM", first.summary["next"]).lines == []
    add(client, 4)
    assert show(client, "FROM", first.summary["next"]).numbers == [4]


def test_a_cursor_continues_after_the_entry_was_trimmed(client: redis.Redis) -> None:
    fill(client, range(1, 31))
    cursor = show(client).summary["next"]
    client.xtrim(KEYS.log, minid=f"{MILLISECONDS + 21}-21", approximate=False)
    reply = show(client, "FROM", cursor)
    assert reply.numbers == list(range(21, 31))
    assert reply.summary["begins"] == f"{MILLISECONDS + 21}-21", "the reader sees what is missing"


def test_at_most_ten_thousand_of_a_hundred_thousand_entries_are_read_per_call(client: redis.Redis) -> None:
    fill(client, range(1, 100_001))
    replies = all_pages(client, "TYPE", "none.*")
    assert [reply.summary["read"] for reply in replies] == [10_000] * 10 + [0]
    assert all(reply.lines == [] for reply in replies)
    reply = show(client, "LINES", 1000)
    assert (len(reply.lines), reply.summary["read"]) == (1000, 1000)
    last = show(client, "REV", "LINES", 1)
    assert (last.numbers, last.summary["entries"]) == ([100_000], 100_000)


def test_a_reply_of_large_entries_ends_after_four_mebibytes_and_can_be_continued(client: redis.Redis) -> None:
    for number in range(1, 11):
        add(client, number, data={"pod": "default/web", "text": "x" * 2**20})
    replies = all_pages(client, "LINES", 1000)
    assert [reply.numbers for reply in replies] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert pod(client, "web", "LINES", 200).numbers == [10, 9, 8, 7]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("TPYE", "x"), 'unknown word "TPYE", expected one of CAUSE, ENTITY, FROM, '),
        (("FROM",), "FROM is the last word, expected a value after it"),
        (("LINES", "-1"), 'LINES is "-1", expected a number from 0 to 1000'),
        (("LINES", 1001), 'LINES is "1001", expected a number from 0 to 1000'),
        (("LINES", "many"), 'LINES is "many", expected'),
        (("LINES", "1e2"), 'LINES is "1e2", expected'),
        (("READ", 0), 'READ is "0", expected a number from 1 to 10000'),
        (("READ", 10_001), 'READ is "10001", expected a number from 1 to 10000'),
        (("FROM", "yesterday"), 'FROM is "yesterday", expected a position'),
        (("TO", "2025-02-29"), 'TO is "2025-02-29", expected a position'),
        (("TO", "2025-13-01"), 'TO is "2025-13-01"'),
        (("TO", "2025-11-27T24:00:00Z"), 'TO is "2025-11-27T24:00:00Z"'),
        (("TO", "2025-11-27T10:00:00.Z"), 'TO is "2025-11-27T10:00:00.Z"'),
        (("TO", "2025-11-27T10:00:00+01:00"), "a time in UTC"),
        (("TO", "1969-11-27"), 'TO is "1969-11-27"'),
        (("FROM", ""), 'FROM is "", expected a position'),
        (("FROM", "line\nbreak"), r'FROM is "line\nbreak"'),
        (("FROM", f"{10**30}-1"), "chronolet_show_2: Invalid stream ID"),
    ],
)
def test_bad_arguments_are_refused_in_readable_text(
    client: redis.Redis, arguments: tuple[object, ...], text: str
) -> None:
    assert refusal(client, *arguments).startswith("chronolet_show_2: ")
    assert text in refusal(client, *arguments)


def test_a_key_of_another_type_and_a_missing_key_are_refused(client: redis.Redis) -> None:
    client.set(KEYS.log, "x")
    assert f"{KEYS.log} is a string, expected a stream" in refusal(client)
    client.set("two\r\nlines", "x")
    assert "is a string, expected a stream" in refusal(client, key="two\r\nlines")
    with pytest.raises(redis.ResponseError, match="no key was given"):
        client.fcall_ro("chronolet_show_2", 0)


UNDECODABLE = {
    "NaN": msgpack.packb(float("nan")),
    "infinity": msgpack.packb({"a": [float("inf")]}),
    "nothing": b"",
    "cut short": b"\x82\xa1a",
    "ext": msgpack.packb(msgpack.ExtType(5, b"x")),
    "reserved": b"\xc1",
    "plain text": b"hello",
    "two values": b"\x01\x02",
    "nested too deeply": b"\x91" * 5000 + b"\x01",
    "doubling": b"\x82\x01" * 200 + b"\x01" + b"\xa1x\x01" * 200,
}


@pytest.mark.parametrize("name", UNDECODABLE)
def test_data_that_cannot_be_decoded_is_marked_and_hides_no_other_entry(name: str, client: redis.Redis) -> None:
    add(client, 1)
    client.xadd(KEYS.log, {"type": "t@1", "data": UNDECODABLE[name]}, id=f"{MILLISECONDS + 2}-2")
    add(client, 3)
    reply = show(client)
    assert reply.numbers == [1, 2, 3]
    assert list(reply.lines[1]["data"]) == ["undecodable"]
    assert "user_function" not in reply.lines[1]["data"]["undecodable"]


@pytest.mark.parametrize(
    "value",
    [
        {"n": 2**53 - 1, "m": -(2**53) + 1},
        {"f": 0.1, "g": 1e300, "h": -2.5e-7, "i": 123456789.125, "j": 1 / 3},
        {"text": 'a "quoted" \\ / \t \x00 ü \U0001f600'},
        {"list": [1, [2, {"a": True, "b": False}]]},
        {"1": "text", "2": "as a name"},
    ],
)
def test_values_are_shown_exactly(client: redis.Redis, value: Any) -> None:
    add(client, 1, data=value)
    assert show(client).lines[0]["data"] == value


def test_names_in_a_map_are_in_order_and_a_sparse_list_is_a_map(client: redis.Redis) -> None:
    add(client, 1, data={"b": 1, "c": {3: "x", 1: "y"}, "a": []})
    (line, _) = client.fcall_ro("chronolet_show_2", 1, KEYS.log)
    assert line.decode().endswith('"data":{"a":{},"b":1,"c":{"1":"y","3":"x"}}}')


BAD_UTF8 = [
    b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x8f\xbf\xbf", b"\x80",
    b"\xe0\x9f\xbf",
]  # fmt: skip


def test_bytes_that_are_no_text_do_not_make_a_line_unreadable(client: redis.Redis) -> None:
    bad = b"a" + b"b".join(BAD_UTF8) + "ü€\U0001f600".encode()
    client.xadd(KEYS.log, {"type": bad, "entity": "ü", "data": msgpack.packb({"x": bad.decode("latin1")})})
    (line, _) = client.fcall_ro("chronolet_show_2", 1, KEYS.log)
    shown = json.loads(line)  # raises an error for invalid UTF-8
    assert shown["type"].startswith("a\ufffd")
    assert shown["type"].endswith("ü€\U0001f600")
    assert shown["type"].count("b") == len(BAD_UTF8) - 1
    assert shown["entity"] == "ü"


def test_entries_of_strangers_are_shown(client: redis.Redis) -> None:
    client.xadd(KEYS.log, {"position": "mine", "a": "1"}, id="1-1")
    client.execute_command("XADD", KEYS.log, "2-1", "a", "1", "a", "2")
    client.xadd(KEYS.log, {"a": "1"}, id="18446744073709551614-18446744073709551615")
    lines = show(client).lines
    assert lines[0] == {"position": "1-1", "time": "1970-01-01T00:00:00.001Z", "position_": "mine", "a": "1"}
    assert lines[1] == {"position": "2-1", "time": "1970-01-01T00:00:00.002Z", "a": "1", "a_": "2"}
    assert lines[2] == {"position": "18446744073709551614-18446744073709551615", "time": None, "a": "1"}
    assert show(client, "LATEST", "CAUSE", "").lines == lines[2:], "they have no entity, no subject and no cause"


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        ("1970-01-01", 0),
        ("2000-02-29T12:00Z", 951825600),
        ("2024-02-29T23:59:59Z", 1709251199),
        ("2024-03-01", 1709251200),
        ("2023-12-31T00:00:00Z", 1703980800),
        ("2100-03-01", 4107542400),
    ],
)
def test_times_are_converted_both_ways(client: redis.Redis, moment: str, seconds: int) -> None:
    client.xadd(KEYS.log, {"a": "before"}, id=f"{seconds * 1000}-1")
    client.xadd(KEYS.log, {"a": "after"}, id=f"{seconds * 1000 + 1}-1")
    assert show(client, "TO", moment).of("a") == ["before"]
    (time,) = show(client, "FROM", moment, "LINES", 1).of("time")
    assert time[: len(moment.rstrip("Z"))] == moment.rstrip("Z")


def test_a_pattern_of_many_stars_takes_no_time_to_mention(client: redis.Redis) -> None:
    """A Lua pattern would try every way to divide the text among the stars."""
    add(client, 1, entity="a" * 5000 + "c")
    assert show(client, "ENTITY", "*a" * 200 + "b").lines == []
    assert show(client, "ENTITY", "*a" * 200 + "c").numbers == [1]


GOLDEN = sorted(FOLDER.glob("*.json"))


def test_every_published_type_is_shown_with_all_its_values(client: redis.Redis) -> None:
    assert len(GOLDEN) > 50
    samples = [json.loads(path.read_text()) for path in GOLDEN]
    for number, sample in enumerate(samples, start=1):
        fields = {"type": sample["type"], "data": bytes.fromhex(sample["full"]["bytes"])}
        client.xadd(KEYS.log, fields, id=f"{MILLISECONDS}-{number}")
    reply = show(client, "LINES", 1000)
    assert reply.of("type") == [sample["type"] for sample in samples]
    assert reply.of("data") == [as_lua_has_it(sample["full"]["data"]) for sample in samples]


def as_lua_has_it(value: Any) -> Any:
    """Return the value without null fields, and with `{}` for an empty list."""
    if isinstance(value, dict):
        return {name: as_lua_has_it(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [as_lua_has_it(inner) for inner in value] or {}
    return value
