"""The kernel's own fields in the data of an entry: added at the end, and taken out again."""

from typing import Any

import msgpack
import pytest

from chronolet_schemas import codec, kernel
from chronolet_schemas.data_fields import parts, with_input
from chronolet_schemas.envelope import Event
from chronolet_schemas.times import with_time

NOW = 1_999_999_000_123


@pytest.mark.parametrize("size", [0, 1, 13, 14, 15, 16, 300])
@pytest.mark.parametrize("value", [None, -3, [5, 2], [None, "Name", {"a": "b"}], [1, "Name", b"\xa3_in", True]])
@pytest.mark.parametrize("timed", [False, True])
def test_what_was_added_is_found_and_the_rest_is_as_before(size: int, value: Any, timed: bool) -> None:
    fields = {f"field{number}": number for number in range(size)}
    data = msgpack.packb(fields)
    added = with_input(data, value)
    found = parts(with_time(added, NOW) if timed else added)
    assert (found.recorded, found.value) == (True, value)
    assert (found.plain, found.fields) == (data, fields)


def test_data_without_the_field_is_as_it_is() -> None:
    data = msgpack.packb({"a": 1})
    assert parts(data) == (data, {"a": 1}, False, None)
    assert parts(with_time(data, NOW)) == (data, {"a": 1}, False, None)


@pytest.mark.parametrize("data", [b"\xc0", msgpack.packb([1]), b"\xde\xff\xff", b"\xdf\x00\x01\x00\x00"])
def test_what_has_no_room_for_a_field_stays_as_it_is(data: bytes) -> None:
    assert with_input(data, 1) == data


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x81\xa1a", msgpack.packb([1]), msgpack.packb("text")])
def test_what_is_no_map_cannot_be_split(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - msgspec's exceptions for bad data are subclasses
        parts(data)


def test_a_reader_that_does_not_know_the_field_ignores_it() -> None:
    event = kernel.ClockJumped(by_milliseconds=5)
    assert codec.decode("kernel.ClockJumped@1", with_input(codec.encode(event), [3, "Due"]), Event) == event
