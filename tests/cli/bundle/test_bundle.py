"""`chronolet bundle`: what a bundle answers is what the node answers, and it has nothing else."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chronolet.cli.bundle.open import LIVE
from chronolet.cli.main import COMMANDS
from chronolet.history.bundle.reader import opened
from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas import manifests, pleg, pod
from chronolet_schemas.envelope import Entry, Position
from chronolet_schemas.prober import RawResult
from tests.cli.support.histories import APP, SECOND, UID, WEB, accepted, recorded
from tests.cli.support.written_node import NOON, Result, WrittenNode

READINGS = (
    ("get", "pods", "-A", "-o", "wide"),
    ("get", "pods", "-A", "-o", "json"),
    ("get", "pods,containers,images,devices"),
    ("get", "nodes", "-o", "json"),
    ("get", "events", "-A"),
    ("describe", "pods", "-A"),
    ("events", "-A"),
    ("events", "--for", "pod/web", "--types", "Warning"),
    ("logs", "web", "-c", "app"),
)
"""Commands that take `--at`."""
OTHERS = (
    ("log",),
    ("log", "-n", "3", "-o", "json"),
    ("log", "--pod", "web", "--since", "150s"),
    ("diff", "--from", "-150s"),
    ("diff", "--from", "-150s", "--to", "-100s", "--show", "both", "-A"),
    ("checkpoint",),
    ("replay",),
    ("replay", "--at", "-130s"),
    ("replay", "--verify"),
    ("timeline",),
    ("history", "images"),
    ("history", "node"),
)


@pytest.fixture
def plain_node(node: WrittenNode) -> WrittenNode:
    """The node of `histories.web`, whose pods have no secrets: a bundle must answer exactly as it does."""
    node.write(
        WEB, accepted(containers=[{"name": "app", "image": "busybox:1"}, {"name": "side", "image": "busybox:2"}])
    )
    return node


def saved(node: WrittenNode, folder: Path, *options: str) -> Path:
    path = folder / "node.bundle"
    result = node.run("bundle", "save", str(path), *options)
    assert (result.status, result.errors) == (0, "")
    return path


def on(node: WrittenNode, path: Path, *words: str) -> Result:
    return node.run("bundle", "open", str(path), *words)


@pytest.mark.parametrize("moment", [[], ["--at", "-130s"], ["--at", "#22"], ["--at", "2027-01-15T08:01:10Z"]])
@pytest.mark.parametrize("words", READINGS, ids=" ".join)
def test_a_bundle_answers_what_the_node_answers(
    plain_node: WrittenNode, tmp_path: Path, words: tuple[str, ...], moment: list[str]
) -> None:
    path = saved(plain_node, tmp_path, "--keep", "*")
    expected = plain_node.run(*words, *(moment or ["--at", "-0s"]))
    assert expected.status == 0
    assert expected.output
    assert on(plain_node, path, *words, *moment) == expected


@pytest.mark.parametrize("words", OTHERS, ids=" ".join)
def test_a_bundle_answers_the_other_commands(plain_node: WrittenNode, tmp_path: Path, words: tuple[str, ...]) -> None:
    path = saved(plain_node, tmp_path, "--keep", "*")
    expected = plain_node.run(*words)
    assert expected.status == 0
    assert expected.output
    assert on(plain_node, path, *words) == expected


def test_probe_results_in_the_window_are_kept(node: WrittenNode, tmp_path: Path) -> None:
    def result(at: int, output: str) -> RawResult:
        fields = dict.fromkeys(RawResult.__struct_fields__, "")
        about = {"pod": "default/web", "uid": UID, "container": "app", "probe": "Liveness", "outcome": "failure"}
        return RawResult(**{**fields, **about, "at": str(NOON + at), "milliseconds": "5", "output": output})

    node.results = [result(210 * SECOND, "later"), result(190 * SECOND, "password=hunter2"), result(0, "earlier")]
    path, other = saved(node, tmp_path, "--from", "-140s"), tmp_path / "other"
    expected = [result(190 * SECOND, "password=<redacted-1>")]
    assert list(opened(path).results()) == expected
    assert node.run("bundle", "anonymise", str(path), str(other)).status == 0
    assert [one.output for one in opened(other).results()] == ["password=<redacted-1>"]


def test_the_present_of_a_bundle_is_its_end(node: WrittenNode, tmp_path: Path) -> None:
    path = saved(node, tmp_path)
    expected = node.run("get", "pods")
    node.now += 3_600 * SECOND
    assert on(node, path, "get", "pods") == expected
    assert node.run("get", "pods") != expected


@pytest.mark.parametrize("begin", ["-199s", "-140s", "#9", "#19", "2027-01-15T08:00:30Z"])
def test_a_window_has_the_states_at_its_beginning(node: WrittenNode, tmp_path: Path, begin: str) -> None:
    path = saved(node, tmp_path, "--from", begin)
    whole = tmp_path / "whole"
    assert node.run("bundle", "save", str(whole)).status == 0
    for words in (("get", "pods,containers", "-A", "-o", "json"), ("get", "pods,containers", "-A", "-o", "wide")):
        for moment in ([], ["--at", begin], ["--at", "-120s"]):
            expected = on(node, whole, *words, *moment)
            assert expected.status == 0
            assert on(node, path, *words, *moment) == expected
    assert opened(path).manifest.count < opened(whole).manifest.count


def test_a_window_has_only_its_own_entries(node: WrittenNode, tmp_path: Path) -> None:
    path = saved(node, tmp_path, "--from", "#9", "--to", "#12")
    numbers = [
        json.loads(line)["position"].partition("-")[2]
        for line in on(node, path, "log", "-o", "json").output.split("\n")
        if line
    ]
    assert numbers == ["10", "11", "12"]
    assert on(node, path, "log", "-n", "100") == on(node, path, "log")
    last = on(node, path, "get", "pods", "-o", "json").output
    assert last == node.run("get", "pods", "-o", "json", "--at", "#12").output.replace('"b"', '"<redacted-1>"')


@pytest.mark.parametrize("moment", ["#3", "#8", "-201s", "2027-01-15T07:00:00Z", "-10d"])
def test_a_moment_before_the_window_is_named(node: WrittenNode, tmp_path: Path, moment: str) -> None:
    path = saved(node, tmp_path, "--from", "#19")
    result = on(node, path, "get", "pods", "--at", moment)
    assert result.status == 1
    assert result.errors.startswith("error: --at: ")
    assert f"{path}: the bundle has the log from 2027-01-15T08:01:00Z on, after entry #19" in result.errors
    assert result.output == ""


@pytest.mark.parametrize("moment", ["#26", "2027-01-15T09:00:00Z", "1800000000000-99"])
def test_a_moment_after_the_window_is_named(node: WrittenNode, tmp_path: Path, moment: str) -> None:
    result = on(node, saved(node, tmp_path), "get", "pods", "--at", moment)
    assert result.status == 1
    assert result.errors.startswith("error: --at: ")


def test_a_window_is_not_verified(node: WrittenNode, tmp_path: Path) -> None:
    result = on(node, saved(node, tmp_path, "--from", "#9"), "replay", "--verify")
    assert result.status == 0
    assert "Nothing was compared. It needs the log from its beginning" in result.output


def test_following_ends_at_the_end(node: WrittenNode, tmp_path: Path) -> None:
    path = saved(node, tmp_path)
    for words in (
        ("get", "pods", "-w"),
        ("log", "-f", "-n", "1"),
        ("events", "-w"),
        ("get", "pods", "-w", "--from", "-190s"),
    ):
        result = on(node, path, *words)
        assert (result.status, result.errors) == (0, ""), words
        assert result.output
    assert "CrashLoopBackOff" in on(node, path, "get", "pods", "-w", "--from", "-190s").output


# -- what a bundle does not have --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(LIVE))
def test_commands_for_a_live_node_are_refused(node: WrittenNode, tmp_path: Path, name: str) -> None:
    assert name in COMMANDS
    path = saved(node, tmp_path)
    result = on(node, path, name)
    assert result.status == 1
    assert f"{name} needs a live node" in result.errors
    assert f"\n  {name} " not in on(node, path, "--help").output


@pytest.mark.parametrize("words", [("get", "actors")])
def test_what_needs_processes_is_refused(node: WrittenNode, tmp_path: Path, words: tuple[str, ...]) -> None:
    result = on(node, saved(node, tmp_path), *words)
    assert result.status == 1
    assert "a bundle is read-only and has no owners of shards" in result.errors


# -- the file ---------------------------------------------------------------------------------------------------------
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
    class Broken:
        def entries(self, after: Position, upto: Position) -> Any:
            raise HistoryMissing("the archive is gone")

        def numbered(self, number: int) -> Entry | None:
            return None

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


# -- anonymise --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("options", [(), ("--from", "#12")])
def test_an_anonymised_bundle_has_the_same_states_under_other_names(
    node: WrittenNode, tmp_path: Path, options: tuple[str, ...]
) -> None:
    node.write("pod/shop/cart", accepted("cart", "shop", containers=[{"name": "billing", "image": "reg.local/cart:1"}]))
    node.write(WEB, recorded("Pulling", 'Pulling image "reg.local/cart:1" for shop/cart at 10.0.0.7'))
    path, other = saved(node, tmp_path, *options), tmp_path / "other"
    result = node.run("bundle", "anonymise", str(path), str(other))
    assert (result.status, result.errors) == (0, "")
    before = json.loads(on(node, path, "get", "pods", "-A", "-o", "json").output)
    after = json.loads(on(node, other, "get", "pods", "-A", "-o", "json").output)
    assert shape(before) == shape(after)
    everything = "".join(on(node, other, *words).output for words in (*READINGS[:-1], ("log", "-o", "json"), ()))
    for name in ("shop", "cart", "billing", "reg.local", "10.0.0.7", UID):
        assert name not in everything
    assert "namespace-1/pod-" in everything
    assert "(names are replaced)" in on(node, other).output
    statuses = [one["status"] for one in after["items"]]
    assert [one["phase"] for one in statuses] == [one["status"]["phase"] for one in before["items"]]


def shape(value: Any) -> Any:
    """Return plain data with every text replaced, in an order that does not depend on names."""
    if isinstance(value, dict):
        return sorted((str(type(held)), repr(shape(held))) for held in value.values())
    if isinstance(value, list):
        return sorted(repr(shape(item)) for item in value)
    return "text" if isinstance(value, str) else value


def test_a_pod_can_be_found_by_its_new_name(node: WrittenNode, tmp_path: Path) -> None:
    node.write(
        "pod/default/cart",
        accepted("cart"),
        pod.ContainerBlocked(
            **{**APP, "pod": "default/cart"}, attempt=0, reason="CreateContainerConfigError", message="m"
        ),
    )
    path, other = saved(node, tmp_path), tmp_path / "other"
    assert node.run("bundle", "anonymise", str(path), str(other)).status == 0
    assert on(node, other, "get", "pod", "cart").status == 1
    rows = on(node, other, "get", "pods", "--no-headers").output.splitlines()
    name = next(row.split()[0] for row in rows if "CreateContainerConfigError" in row)
    assert on(node, other, "describe", "pod", name).output.startswith(f"Name:             {name}\n")
    assert (
        on(node, other, "log", "--pod", name).output.count("\n")
        == on(node, path, "log", "--pod", "cart").output.count("\n")
        == 2
    )
