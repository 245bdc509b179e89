"""The time at which an entry was written: from its position, or from the field that the server adds."""

import msgpack
import pytest

from chronolet_schemas import codec, kernel
from chronolet_schemas.envelope import Entry, Event, Position
from chronolet_schemas.times import stamp_of, time_at, time_of, with_time

AT = Position(2_000_000_000_000, 7)
NOW = 1_999_999_000_123


def test_a_position_has_the_time() -> None:
    jumped = codec.encode(kernel.ClockJumped(by_milliseconds=5))
    entry = Entry(AT, "kernel.ClockJumped@1", "", "", "", "", jumped)
    assert (time_of(entry), stamp_of(entry)) == (AT.milliseconds, (AT, AT.milliseconds))
    assert time_at(AT, b"") == AT.milliseconds


@pytest.mark.parametrize("size", [0, 1, 13, 14, 15, 16, 300])
def test_the_field_has_the_time_and_nothing_else_changes(size: int) -> None:
    fields = {f"field{number}": number for number in range(size)}
    timed = with_time(msgpack.packb(fields), NOW)
    assert time_at(AT, timed) == NOW
    assert msgpack.unpackb(timed) == {**fields, "_time": NOW}


@pytest.mark.parametrize("data", [b"", b"\xc0", msgpack.packb([1]), b"\xde\xff\xff", b"\xdf\x00\x01\x00\x00"])
def test_what_is_no_map_stays_as_it_is(data: bytes) -> None:
    assert with_time(data, NOW) == data


def test_a_reader_that_does_not_know_the_field_ignores_it() -> None:
    event = kernel.ClockJumped(by_milliseconds=5)
    timed = with_time(codec.encode(event), NOW)
    assert timed != codec.encode(event)
    assert codec.decode("kernel.ClockJumped@1", timed, Event) == event
