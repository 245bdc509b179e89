"""Whatever a bundle of a stranger has, a command ends with one line about it."""

import io
from pathlib import Path

import msgspec
import pytest

from chronolet.cli.services import readable_kinds
from chronolet.kernel.step.snapshots import snapshot_format
from chronolet_schemas.envelope import Position
from tests.cli.support.written_node import WrittenNode
from tests.history.bundle.test_format import NOON, AnyWriter, about, entry

DEEP = b"\x81\xa1a" * 900 + b"\x01"
(POD,) = readable_kinds(("pod",))
STATES = {
    "no map": b"\x91\x01",
    "garbage": b"\xc1\xc1",
    "states of another form": msgspec.msgpack.encode({"default/web": {"state": {"x": 1}, "positions": 7}}),
    "states that are nested deeply": b"\x81\xa1a" + DEEP,
}


def bundle(folder: Path, states: bytes, data: bytes = b"\x80") -> Path:
    stream = io.BytesIO()
    writer = AnyWriter(stream)
    writer.states("pod", snapshot_format(POD, 1), states)
    writer.entries([entry(number, data=data, type="future.Thing@9", entity="x/y") for number in (8, 9)])
    writer.finish(about(Position(NOON, 7)))
    (folder / "x").write_bytes(stream.getvalue())
    return folder / "x"


@pytest.mark.parametrize("states", STATES.values(), ids=STATES)
@pytest.mark.parametrize("words", [("get", "pods"), ("replay",), ()])
def test_states_that_cannot_be_read_are_named(
    node: WrittenNode, tmp_path: Path, states: bytes, words: tuple[str, ...]
) -> None:
    path = bundle(tmp_path, states)
    result = node.run("bundle", "open", *(() if words else ("--check",)), str(path), *words)
    assert result.status == 1
    assert result.errors.startswith(f"error: {path}: the states of pod ")
    assert result.errors.count("\n") == 1


@pytest.mark.parametrize("words", [("log",), ("log", "-o", "json"), ("get", "pods"), ("get", "pods", "-o", "json")])
@pytest.mark.parametrize("times", [90, 900, 90_000])
def test_data_that_is_nested_deeply_is_no_traceback(
    node: WrittenNode, tmp_path: Path, words: tuple[str, ...], times: int
) -> None:
    path = bundle(tmp_path, b"\x80", b"\x81\xa1a" * times + b"\x01")
    result = node.run("bundle", "open", str(path), *words)
    assert (result.status, result.errors) == (0, "") or result.errors.count("\n") == 1


def test_deep_data_is_anonymised_or_refused(node: WrittenNode, tmp_path: Path) -> None:
    result = node.run("bundle", "anonymise", str(bundle(tmp_path, b"\x80", DEEP)), str(tmp_path / "out"))
    assert result.errors.count("\n") == (result.status != 0)
