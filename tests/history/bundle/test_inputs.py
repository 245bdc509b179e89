"""Secrets are also taken out of what decisions were made from, and the rest of it can still be read."""

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from chronolet.history.bundle.redaction import inputs, searching
from chronolet.history.bundle.redaction.redactor import Redactor, Values
from chronolet.history.redeciding import Redeciding
from chronolet.kernel.recording.payloads import Group, Payloads
from chronolet_schemas import data_fields, times
from chronolet_schemas.envelope import Entry, Position
from tests.kernel import chore
from tests.kernel.chore import Assign
from tests.kernel.rig import Rig, request
from tests.support import scratch

SECRET = "hunter2-and-more"
NOON = 1_800_000_000_000


def entry(number: int, data: bytes, **more: str) -> Entry:
    fields = {"type": "x.Y@1", "entity": "x/y", "subject": "s", "actor": "x#1", "cause": f"c{number}", **more}
    return Entry(Position(NOON, number), data=data, **fields)


def redacted(entries: Sequence[Entry]) -> list[Entry]:
    values = Values()
    list(inputs.redacted(entries, Redactor(values)))
    return list(inputs.redacted(entries, Redactor(values, search=searching.search(values))))


def events(**more: Any) -> bytes:
    return msgspec.msgpack.encode({"env": [{"name": "PASSWORD", "value": SECRET}], **more})


def contents(entries: Sequence[Entry]) -> list[Any]:
    """Unpack the contents of these entries, which have one owner."""
    payloads, found = Payloads(), list[Any]()
    for one in entries:
        parts = data_fields.parts(one.data)
        value = parts.value["in"] if isinstance(parts.value, dict) else parts.value
        packed = payloads.command(value[1], value[2:], Group("s", [parts.fields], parts.plain))
        found.append(msgspec.msgpack.decode(packed))
    return found


@pytest.fixture
def log() -> list[Entry]:
    """Four inputs of one owner. Each content repeats what is in the one before, and the last three are equal."""
    payloads, made = Payloads(), list[Entry]()
    for number in (1, 2, 3, 4):
        data = events(number=number)
        full = msgspec.msgpack.encode({"output": f"login {SECRET} refused", "n": min(number, 2), "x": "y" * 2_000})
        value: Any = [5, "Looked", *payloads.packed("Looked", full, data)]
        made.append(entry(number, data_fields.with_input(data, {"by": "p", "in": value} if number == 1 else value)))
    return made


def test_a_packed_content_is_redacted_and_can_be_unpacked(log: list[Entry]) -> None:
    assert SECRET in str(contents(log)), "otherwise, this test could not fail"
    found = redacted(log)
    assert [one["output"] for one in contents(found)] == ["login <redacted-1> refused"] * 4
    assert [one["n"] for one in contents(found)] == [one["n"] for one in contents(log)]
    assert data_fields.parts(found[0].data).value["by"] == "p"
    assert [one._replace(data=b"") for one in found] == [one._replace(data=b"") for one in log]
    assert sum(len(one.data) for one in found) < 2 * sum(len(one.data) for one in log)


def test_a_content_whose_predecessor_is_missing_is_left_out(log: list[Entry]) -> None:
    for one in redacted(log[1:3]):
        value = data_fields.parts(one.data).value
        assert value == [5, "Looked", None, 0], "which a reader takes for a content that it has not read"


@pytest.mark.parametrize("content", [b"hunter2-and-more", zlib.compress(SECRET.encode()), 7, None, "x"])
def test_a_content_that_is_damaged_is_left_out(content: Any) -> None:
    (found,) = redacted([entry(1, data_fields.with_input(events(), [5, "Looked", content]))])
    assert data_fields.parts(found.data).value == [5, "Looked", None, 0]


VALUES: dict[str, Any] = {
    "none": None,
    "a time": 5,
    "several entries": [5, 3],
    "a timer": [5, "Due", 7],
    "a name": [None, "StreamOpened"],
    "a map": [5, "Looked", {"count": 3}],
    "a process": {"by": "p", "in": [5, "Looked", {"count": 3}]},
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("timed", [False, True])
def test_other_inputs_stay_as_they_were(value: Any, timed: bool) -> None:
    data = data_fields.with_input(msgspec.msgpack.encode({"a": 1}), value)
    given = entry(1, times.with_time(data, NOON) if timed else data)
    assert redacted([given]) == [given]


ODD: dict[str, Any] = {
    "in place of the time": [SECRET, "Looked", b"x"],
    "in the time": [{"a": [SECRET]}, "Looked", b"x"],
    "in place of the name": [5, SECRET, b"x"],
    "in the name": [5, {"a": SECRET}, b"x"],
    "in the name of a field": {SECRET: 5},
    "next to the process": {"by": "p", "in": [5, "Looked", {"count": 3}], SECRET: 1},
}


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_a_secret_that_another_program_wrote_into_an_input_is_redacted(value: Any) -> None:
    (found,) = redacted([entry(1, data_fields.with_input(events(), value))])
    assert SECRET.encode() not in found.data
    assert data_fields.parts(found.data).recorded


def test_a_secret_in_a_map_is_redacted() -> None:
    (found,) = redacted([entry(1, data_fields.with_input(events(), [5, "Ended", {"message": f"said {SECRET}"}]))])
    assert data_fields.parts(found.data).value == [5, "Ended", {"message": "said <redacted-1>"}]


@pytest.mark.parametrize("levels", [300, 900, 90_000])
def test_an_input_that_is_nested_deeply_is_left_out(levels: int) -> None:
    value = msgspec.Raw(b"\x81\xa1a" * levels + b"\x01")
    (found,) = redacted([entry(1, data_fields.with_input(events(), value))])
    assert SECRET.encode() not in found.data
    assert b"<redacted-1>" in found.data or b"that are not the data of an event" in found.data


def test_foreign_entries_and_damaged_ones_keep_their_places(log: list[Entry]) -> None:
    foreign, damaged = entry(5, b"", type=""), entry(6, b"\xc1")
    found = redacted([log[0], foreign, log[1], damaged, log[2]])
    assert [one.position for one in found] == [one.position for one in (log[0], foreign, log[1], damaged, log[2])]
    assert found[1] == foreign


def test_a_log_without_secrets_is_decided_again(rig: Rig) -> None:
    process = rig.process(chore.kind())
    rig.send(Assign(request=request(), key="a", one_shot="w1", due=1))
    scratch.wait_until(lambda: len(rig.events(chore.Completed)) == 1, "the result")
    process.retire()
    log, redeciding = list(rig.log()), Redeciding((chore.kind(),))
    findings = [finding for one in redacted(log) for finding in redeciding.add(one)]
    assert [*findings, *redeciding.end()] == []
    assert redeciding.summary().decisions > 0
