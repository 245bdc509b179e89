"""The file that `chronolet bundle save` writes: whole or not at all, described, and checked when it is read."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chronolet.history.bundle import parts
from chronolet.history.bundle.reader import opened
from chronolet.history.entries import NoArchive
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas import manifests, pleg
from chronolet_schemas.envelope import Entry, Position
from tests.cli.bundle.test_bundle import on, saved
from tests.cli.support.histories import WEB, accepted, recorded
from tests.cli.support.written_node import NOON, Result, WrittenNode


def test_a_file_is_not_replaced_unless_forced(node: WrittenNode, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("precious")
    result = node.run("bundle", "save", str(path))
    assert result == Result("", f"error: {path}: exists already: --force replaces it\n", 1)
    assert path.read_text() == "precious"
    assert node.run("bundle", "save", str(path), "--force").status == 0
    assert opened(path).manifest.count == 25
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["x"], "no temporary file is left"


@pytest.mark.parametrize("place", ["missing/x", ""])
def test_a_place_that_cannot_be_written_is_named(node: WrittenNode, tmp_path: Path, place: str) -> None:
    result = node.run("bundle", "save", str(tmp_path / place))
    assert result.status == 1
    assert result.errors.startswith(f"error: {tmp_path / place}: ")


def test_a_failed_save_leaves_nothing(node: WrittenNode, tmp_path: Path) -> None:
    class Broken(NoArchive):
        def entries(self, *_: object) -> Any:
            raise HistoryMissing("the archive is gone")

    node.archive = Broken()
    node.server.trimmed = node.server.archived = Position(NOON, 5)
    result = node.run("bundle", "save", str(tmp_path / "x"))
    assert result == Result("", "error: the archive is gone\n", 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--from", "-1s", "--to", "-5s"), "expected a moment with entries between it and --to"),
        (("--from", "#25"), "expected a moment with entries between it and --to"),
        (("--from", "noon"), "--from: found 'noon'"),
        (("--to", "#26"), "--to: the log has no entry #26 yet"),
        (("--from", "2020-01-01"), "--from: 2020-01-01T00:00:00Z is before the beginning of the history"),
    ],
)
def test_a_window_that_is_none_is_named(
    node: WrittenNode, tmp_path: Path, options: tuple[str, ...], problem: str
) -> None:
    result = node.run("bundle", "save", str(tmp_path / "x"), *options)
    assert result.status == 1
    assert problem in result.errors
    assert list(tmp_path.iterdir()) == []


def test_damage_is_named_when_it_is_met_or_looked_for(node: WrittenNode, tmp_path: Path) -> None:
    path = saved(node, tmp_path)
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    for words in (("get", "pods"), ("log",)):
        result = on(node, path, *words)
        assert result.status == 1
        assert f"error: {path}: altered: the part with entries" in result.errors
    assert on(node, path).status == 0, "the description is not in that part"
    assert node.run("bundle", "open", "--check", str(path)).status == 1


@pytest.mark.parametrize("name", ["missing", ""])
def test_a_file_that_cannot_be_read_is_named(node: WrittenNode, tmp_path: Path, name: str) -> None:
    result = on(node, tmp_path / name, "get", "pods")
    assert result.status == 1
    assert result.errors.startswith(f"error: {tmp_path / name}: cannot be read")


def test_states_of_another_form_are_named(node: WrittenNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(node, tmp_path, "--from", "#9")
    monkeypatch.setattr("chronolet.pod.state.FORMAT", 2)
    result = on(node, path, "get", "pods")
    assert result.status == 1
    assert "its states of pod were saved by chronolet " in result.errors
    assert on(node, path, "log", "-n", "1").status == 0


def test_the_description(node: WrittenNode, tmp_path: Path) -> None:
    followed = pleg.StreamFollowed(server="docker 20.10", endpoint="unix:///d", engine_id="e", boot_id="b")
    node.write("pleg/node", followed)
    path = saved(node, tmp_path, "--from", "#9", "--keep", "LOG_*")
    lines = on(node, path).output
    for expected in (
        "Node:      node-1\n",
        "From:      2027-01-15T08:00:00Z, with the states after entry #9\n",
        "To:        2027-01-15T08:03:20Z, entry #26\n",
        "Entries:   18\n",
        "1 known secret values, wherever they occur, except LOG_*\n",
        "kernel.LogStarted run=r node=node-1",
        "pleg.StreamFollowed server=docker 20.10 boot_id=b endpoint=unix:///d engine_id=e\n",
    ):
        assert expected in lines
    described = json.loads(node.run("bundle", "open", "-o", "json", str(path)).output)
    assert described["begins"] == f"{NOON}-9"
    assert [one["type"] for one in described["facts"]] == ["kernel.LogStarted@1", "pleg.StreamFollowed@1"]


@pytest.mark.parametrize("command", ["save", "anonymise"])
def test_what_no_reader_would_accept_is_not_written(
    node: WrittenNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Replaced names are longer, so that a bundle may become too large only then."""
    node.write("pod/default/x1", accepted("x1"))
    node.write(WEB, recorded("Pulling", "x1 " * 1_000))
    path, out = saved(node, tmp_path), tmp_path / "out"
    largest = max(len(entry.data) for entry in opened(path).entries())
    monkeypatch.setattr(parts, "LARGEST_ENTRY", largest - (command == "save"))
    result = node.run("bundle", command, *([] if command == "save" else [str(path)]), str(out))
    assert (result.status, result.output) == (1, "")
    assert result.errors.startswith(f"error: {out}: not written, because no reader would accept it: the part with ")
    assert f"bytes, expected at most {parts.LARGEST_ENTRY}; save a window without that" in result.errors
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


DAMAGED = {
    "nothing": b"",
    "no msgpack": b"\xc1",
    "no map": b"\x91\x01",
    "keys that are no names": b"\x81\x92\x01\x02\x01",
    "deep nesting": b"\x81\xa1a" * 900 + b"\x01",
    "much": msgspec.msgpack.encode({"x": "y" * 40_000}),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("type_", ["kernel.LogStarted@1", "future.Thing@9"])
def test_an_odd_entry_does_not_prevent_a_bundle(node: WrittenNode, tmp_path: Path, type_: str, data: bytes) -> None:
    add(node, type_, data)
    path = saved(node, tmp_path)
    manifest = opened(path).manifest
    assert manifest.count == 26
    assert [one.type for one in manifest.facts][:1] == ["kernel.LogStarted@1"]
    assert all(len(str(one.data)) < 40_000 for one in manifest.facts), "they are for people"
    assert node.run("bundle", "open", "--check", str(path)).status == 0
    assert on(node, path, "get", "pods").output == node.run("get", "pods", "--at", "-0s").output


def add(node: WrittenNode, type_: str, data: bytes) -> None:
    """Append an entry with any data."""
    with node.server.changed:
        last = node.server.last
        node.server.last = Position(last.milliseconds, last.n + 1)
        node.server.log.append(Entry(node.server.last, type_, "future/x", "", "", "", data))


def test_unknown_types_and_foreign_entries_are_kept(node: WrittenNode, tmp_path: Path) -> None:
    unknown = msgspec.msgpack.encode({"env": [{"name": "A", "value": "s3cr3t-value"}], "x": 1, "_time": NOON})
    with node.server.changed:
        last = node.server.last
        node.server.log.append(
            Entry(Position(last.milliseconds, last.n + 1), "future.Thing@9", "future/x", "", "", "", unknown)
        )
        node.server.log.append(Entry(Position(last.milliseconds, last.n + 500), "", "", "", "", "", b""))
        node.server.last = node.server.log[-1].position
    path = saved(node, tmp_path)
    entries = list(opened(path).entries())
    assert entries[-2].type == "future.Thing@9"
    assert b"s3cr3t-value" not in entries[-2].data
    assert entries[-1] == node.server.log[-1]
    assert on(node, path, "get", "pods").output == node.run("get", "pods", "--at", "-0s").output


@pytest.mark.parametrize("options", [(), ("--from", "#26")])
def test_secrets_that_cannot_be_read_are_an_error(node: WrittenNode, tmp_path: Path, options: tuple[str, ...]) -> None:
    """They are in the state folder of the node, not in its log."""
    applied = manifests.SecretApplied(secret="default/db", type="Opaque", digest="d", source="apply")
    node.write("manifests/node", applied)
    node.write(WEB, recorded("Started", "Started container app"))
    saving = ("--root-dir", str(tmp_path), "bundle", "save", str(tmp_path / "x"), *options)
    result = node.run(*saving)
    assert result.status == 1
    assert result.errors.startswith("error: the contents of the node's Secrets cannot be read here")
    assert not (tmp_path / "x").exists()
    assert node.run(*saving, "--without-secrets").status == 0
