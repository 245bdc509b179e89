"""The events that describe a node in the manifest of a bundle, whatever another program wrote into the log."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chronolet.history.bundle.facts import fact
from chronolet.history.bundle.format import encode_manifest
from chronolet_schemas.envelope import Entry, Position
from tests.history.bundle.test_format import about


def described(data: bytes) -> Entry:
    return Entry(Position(1, 1), "qos.NodeDescribed@1", "qos/node", "", "qos#1", "", data)


ODD: dict[str, bytes] = {
    "a nil key": b"\x81\xa1a\x81\xc0\x01",
    "a list as a key": b"\x81\xa1a\x81\x91\x01\x01",
    "a nil key in a list": b"\x81\xa1a\x91\x81\xc0\x01",
    "a nil key of its own": b"\x81\xc0\x01",
    "no map": b"\x91\x01",
    "nothing": b"",
    "nested too deeply": b"\x81\xa1a" * 90_000 + b"\x01",
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
def test_data_that_a_manifest_cannot_have_describes_no_node(data: bytes) -> None:
    assert fact(described(data)) is None


@pytest.mark.parametrize("data", [{"a": {"b": [1, None, "x"]}}, {"a": {1: 2}}, {"a": {"": 0.5}}])
def test_other_data_is_in_the_manifest_without_what_is_the_kernels_own(data: dict[str, Any]) -> None:
    found = fact(described(msgspec.msgpack.encode({**data, "_in": 5})))
    assert found is not None
    assert found.data == data
    assert encode_manifest(msgspec.structs.replace(about(), facts=(found,)))
