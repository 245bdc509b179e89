"""A file of a stranger cannot use much memory: it is refused before its values are decoded."""

import io
import subprocess
import sys
import zlib
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chronolet.history.bundle.format import LARGEST_MANIFEST, Fact
from chronolet.history.bundle.parts import (
    LARGEST_ENTRY,
    LARGEST_PART,
    LATEST,
    MOST_IN_RESULTS,
    Unreadable,
    encode_results,
)
from chronolet.history.bundle.reader import Bundle
from chronolet.history.bundle.writer import BundleWriter, Unwritable
from chronolet.kernel.recording import objects
from chronolet.kernel.recording.payloads import LARGEST_BYTES, Group, Payloads
from chronolet_schemas.envelope import Entry, Position
from chronolet_schemas.prober import RawResult
from tests.history.bundle.test_format import NOON, about, entry, opened, written

VALUES: tuple[Any, ...] = (
    {},
    [],
    "",
    "x" * 40,
    "x" * 70_000,
    b"x" * 300,
    b"x" * 70_000,
    7,
    -7,
    -70,
    200,
    70_000,
    2**40,
    -(2**40),
    1.5,
    None,
    True,
    list(range(20)),
    ["x"] * 70_000,
    {str(n): [n] for n in range(300)},
    msgspec.msgpack.Ext(5, b"1"),
    msgspec.msgpack.Ext(5, b"1" * 16),
    msgspec.msgpack.Ext(5, b"1" * 17),
    msgspec.msgpack.Ext(5, b"1" * 300),
    msgspec.msgpack.Ext(5, b"1" * 70_000),
)


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_what_is_counted(value: Any) -> None:
    """Bytes of texts do not count, whatever they are, and every map behind them does."""
    data = msgspec.msgpack.encode([value, b"\xff" * 300, {}, {}])
    count = bisect_left(range(200_000), True, key=lambda most: _passes(data[:-2], most))
    assert not _passes(data, count + 1)
    assert _passes(data, count + 2)


def _passes(data: bytes, most: int) -> bool:
    try:
        objects.check(data, most)
    except ValueError:
        return False
    return True


BOMBS = {
    "empty maps": b"\xdc\xff\xff" + b"\x80" * 65_535,
    "empty arrays": b"\xdc\xff\xff" + b"\x90" * 65_535,
    "empty texts": b"\xdc\xff\xff" + b"\xa0" * 65_535,
}


def nested(bomb: bytes, times: int) -> bytes:
    return b"\x81\xa1a\xdd" + times.to_bytes(4, "big") + bomb * times


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_an_entry_with_many_values_is_refused(bomb: bytes) -> None:
    with pytest.raises(Unreadable, match="more than 500000 values"):
        list(opened(written([entry(1), entry(2, data=nested(bomb, 100))])).entries())


def test_a_large_entry_is_refused() -> None:
    with pytest.raises(Unreadable, match=f"expected at most {LARGEST_ENTRY}"):
        list(opened(written([entry(1, data=b"x" * (LARGEST_ENTRY + 1))])).entries())


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_states_with_many_values_are_refused(bomb: bytes) -> None:
    with pytest.raises(Unreadable, match="the states of pod is invalid: it has more than"):
        list(opened(written(states=nested(bomb, 70))).states())


@pytest.mark.parametrize("states", [b"\xc1", b"", b"x", b"\x91\x01", b"\x81\xa1a\x01", b"\x81\xa1a" + b"\x91" * 90_000])
def test_states_that_are_no_map_of_maps_are_refused(states: bytes) -> None:
    with pytest.raises(Unreadable, match="the states of pod is invalid: "):
        list(opened(written(states=states)).states())


# -- the writer keeps to the limits ------------------------------------------------------------------------------------
def _write(entries: Sequence[Entry] = (entry(1),), states: bytes = b"\x80", **manifest: Any) -> Bundle:
    stream = io.BytesIO()
    writer = BundleWriter(stream)
    writer.states("pod", 7, states)
    writer.entries(entries)
    writer.finish(msgspec.structs.replace(about(), **manifest))
    return opened(stream.getvalue())


def _fact(size: int) -> Fact:
    return Fact(position="1-1", at=NOON, type="x.Y@1", entity="x/y", data={"a": "x" * size})


TOO_MUCH: dict[str, tuple[dict[str, Any], str]] = {
    "a large entry": (
        {"entries": [entry(1), entry(2, data=b"x" * (LARGEST_ENTRY + 1))]},
        f"{entry(2).position} has {LARGEST_ENTRY + 1} bytes, expected at most {LARGEST_ENTRY}; save a window without",
    ),
    "an entry with many values": ({"entries": [entry(1, data=nested(BOMBS["empty maps"], 100))]}, "500000 values"),
    "a long name": ({"entries": [entry(1, entity="x" * (LARGEST_PART + 1))]}, f"expected at most {LARGEST_PART}; save"),
    "a late entry": ({"entries": [entry(1)._replace(position=Position(2**60, 1))]}, f"expected at most {LATEST}; save"),
    "entries out of order": ({"entries": [entry(2), entry(1)]}, "not in order"),
    "many values in states": (
        {"states": nested(BOMBS["empty maps"], 70)},
        "the states of pod is invalid: it has more than 4000000 values.*; save the log from its beginning",
    ),
    "large facts": ({"facts": (_fact(LARGEST_MANIFEST),)}, f"expected at most {LARGEST_MANIFEST}; save a shorter"),
    "a late end": ({"ends_at": LATEST + 1}, "its manifest is invalid.*; save a shorter window"),
}


@pytest.mark.parametrize(("given", "problem"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_no_reader_accepts_is_not_written(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(Unwritable, match=problem):
        _write(**given)


def test_what_a_reader_just_accepts_is_written() -> None:
    large = [entry(number, data=b"x" * LARGEST_ENTRY) for number in (1, 2, 3)]
    assert list(_write(large).entries()) == large
    late = entry(1)._replace(position=Position(LATEST, 1))
    assert list(_write([late], begins=str(late.position), ends_at=LATEST).entries()) == [late]


def test_many_probe_results_are_in_several_parts() -> None:
    fields = dict.fromkeys(RawResult.__struct_fields__, "1")
    results = [RawResult(**{**fields, "at": str(at)}) for at in range(MOST_IN_RESULTS // len(fields))]
    stream = io.BytesIO()
    writer = BundleWriter(stream)
    for some in encode_results(results):
        writer.results(some)
    writer.entries([entry(1)])
    writer.finish(about())
    assert list(opened(stream.getvalue()).results()) == results


# -- packed contents ---------------------------------------------------------------------------------------------------
def _packed(plain: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(plain) + packer.flush()


GROUP = Group("", [], b"")


def test_a_content_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match=f"more than {LARGEST_BYTES} when unpacked"):
        Payloads().command("x", [_packed(bytes(LARGEST_BYTES + 1))], GROUP)
    with pytest.raises(ValueError, match="more than 500000 values"):
        Payloads().command("x", [_packed(nested(BOMBS["empty maps"], 100))], GROUP)
    assert len(Payloads().command("x", [_packed(bytes(LARGEST_BYTES))], GROUP)) == LARGEST_BYTES


MEASURED = """
import resource, sys
from chronolet.history.bundle.redaction import searching
from chronolet.history.bundle.redaction.redactor import Values
values = Values()
for number in range(2_000):
    values.mark(f"{number:06}" * 66, sure=True)
resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
found = searching._Sure(values)
assert found.end_at_the_beginning_of("001999" * 60 + " and more")[0] == 360
"""


def test_the_ends_of_many_secrets_take_little_memory(tmp_path: Path) -> None:
    limit = 400 * 1024 * 1024
    code = MEASURED.replace("BYTES", str(limit))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
