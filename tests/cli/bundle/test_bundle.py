"""`chronolet bundle`: what a bundle answers is what the node answers, and it has nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from chronolet.cli.bundle.open import LIVE
from chronolet.cli.main import COMMANDS
from chronolet.history.bundle.reader import opened
from chronolet_schemas import pleg, pod, prober, qos
from chronolet_schemas.prober import RawResult
from tests.cli.support.busy_node import busy
from tests.cli.support.histories import APP, SECOND, UID, WEB, accepted, start
from tests.cli.support.written_node import NODE, NOON, Result, WrittenNode, columns
from tests.deciders.qos import nodes
from tests.support.page_parts import parts, rows

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
    ("replay", "--only", "pod/web", "--from", "-150s", "-o", "json"),
    ("timeline",),
    ("history", "images"),
    ("history", "images", "-o", "json"),
    ("history", "node"),
    ("trace", "web"),
    ("why", "web"),
    ("why", "pod/web", "-c", "app", "--nth", "1"),
    ("why", "web", "--at", "-130s", "-o", "json"),
    ("why", "web", "-o", "dot"),
)
"""Commands about the whole log, or with moments of their own."""


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


def test_a_bundle_answers_who_had_which_device(tmp_path: Path) -> None:
    node = busy()
    path = saved(node, tmp_path, "--keep", "*")
    expected = node.run("history", "devices", "--from", "#1")
    assert expected.status == 0
    assert expected.output.count("\n") > 1
    assert on(node, path, "history", "devices", "--from", "#1") == expected


def test_a_bundle_has_no_recorded_probe_outcomes(plain_node: WrittenNode, tmp_path: Path) -> None:
    result = on(plain_node, saved(plain_node, tmp_path), "history", "probes")
    assert (result.status, "a bundle has no outcomes of probes but the last ones" in result.errors) == (1, True)


def test_the_page_of_a_bundle_is_that_of_the_node(plain_node: WrittenNode, tmp_path: Path) -> None:
    path, page, other = saved(plain_node, tmp_path, "--keep", "*"), tmp_path / "page", tmp_path / "other"
    assert plain_node.run("replay", "--html", str(page)).status == 0
    result = on(plain_node, path, "replay", "--html", str(other))
    assert (result.status, result.errors) == (0, "")
    assert other.read_bytes() == page.read_bytes() != b""


def test_the_page_of_a_window_has_the_states_at_its_beginning(plain_node: WrittenNode, tmp_path: Path) -> None:
    path, page = saved(plain_node, tmp_path, "--from", "#13"), tmp_path / "page"
    result = on(plain_node, path, "replay", "--html", str(page))
    assert (result.status, result.errors) == (0, "")
    found = parts(page.read_text(encoding="utf-8"))
    assert found["summary"]["entries"] == opened(path).manifest.count - 1 == 13
    for at, n in enumerate(range(14, 27), 1):
        printed = columns(plain_node.run("get", "pods", "-A", "--no-headers", "--at", f"#{n}").output)
        shown = rows(found, "pod", at)
        assert sorted(shown) == [f"{row[0]}/{row[1]}" for row in printed] != []
        assert [shown[f"{row[0]}/{row[1]}"][3] for row in printed] == [[row[3]] for row in printed]


def test_probe_results_in_the_window_are_kept(
    node: WrittenNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chronolet.history.bundle.parts.RESULTS_IN_PART", 1)

    def result(at: int, output: str) -> RawResult:
        fields = dict.fromkeys(RawResult.__struct_fields__, "")
        about = {"pod": "default/web", "uid": UID, "container": "app", "probe": "Liveness", "outcome": "failure"}
        return RawResult(**{**fields, **about, "at": str(NOON + at), "milliseconds": "5", "output": output})

    node.results = [
        result(210 * SECOND, "later"),
        result(190 * SECOND, "password=hunter2"),
        result(180 * SECOND, "in time"),
        result(0, "earlier"),
    ]
    path, other = saved(node, tmp_path, "--from", "-140s"), tmp_path / "other"
    expected = [result(190 * SECOND, "password=<redacted-1>"), result(180 * SECOND, "in time")]
    assert list(opened(path).results()) == expected
    assert node.run("bundle", "anonymise", str(path), str(other)).status == 0
    assert [one.output for one in opened(other).results()] == ["password=<redacted-1>", "in time"]


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


@pytest.mark.parametrize("noises", [0, 60])
def test_a_window_after_a_death_does_not_take_what_it_lacks_for_silence(tmp_path: Path, noises: int) -> None:
    node, about = WrittenNode(), dict[str, Any](APP, id="a0" * 32)
    node.write(WEB, accepted(), *start(APP, 0, about["id"], node.now))
    died_at = node.now
    for _ in range(noises):
        node.now += SECOND // 2
        node.write("pleg/node", pleg.RelistWorking(containers=1))
    node.now = died_at + 31 * SECOND
    failed = prober.ProbeFailed(
        **about, probe="Readiness", consecutive=1, threshold=3, output="", at=node.now, milliseconds=1
    )
    node.write("prober/default/web/app/Readiness", failed)
    ended: dict[str, Any] = {"exit_code": 3, "reason": "Error", "started_at": NOON, "finished_at": died_at}
    node.write("pleg/node", pleg.ContainerDied(**about, **ended, attempt=0, sent=()))
    node.write(WEB, pod.ContainerExited(**about, **ended, attempt=0), *start(APP, 1, "a1" * 32, node.now))
    silence = "nothing was written to the log meanwhile"
    assert (silence in node.run("why", "web").output) is not bool(noises)
    path = saved(node, tmp_path, "--from", "2027-01-15T08:00:20Z")
    found = on(node, path, "why", "web").output
    assert "chronolet recorded that only 31.0 s later" in found
    # Without entries between the death and the beginning, the window lacks none of the silence.
    assert (silence in found) is not bool(noises)


@pytest.mark.parametrize("words", [("why", "web"), ("why", "web", "-c", "app", "--nth", "1")], ids=" ".join)
def test_why_knows_that_a_window_lacks_what_came_before(
    node: WrittenNode, tmp_path: Path, words: tuple[str, ...]
) -> None:
    result = on(node, saved(node, tmp_path, "--from", "#13"), *words)
    assert result.status == 0
    assert "exited with code 3" in result.output.splitlines()[0]
    assert ("(restart 1 of those in the log, " in result.output) == ("--nth" in words)
    assert result.output.splitlines()[-1] == "The history begins at 2027-01-15T08:01:00.000Z  #14."
    assert result.errors == (
        "note: the history begins after entry #13, and what came before is not known; the answer is from the other "
        "entries\n"
    )


NOT_IN_WINDOW = {
    ("why", "web"): "has no entries about default/web; ",
    ("trace", "web"): "has no entries about the start of default/web; ",
}


@pytest.mark.parametrize(("words", "problem"), NOT_IN_WINDOW.items(), ids=map(" ".join, NOT_IN_WINDOW))
def test_a_pod_without_entries_in_a_window_is_named(
    node: WrittenNode, tmp_path: Path, words: tuple[str, ...], problem: str
) -> None:
    result = on(node, saved(node, tmp_path, "--from", "#22"), *words)
    assert (result.status, result.output) == (1, "")
    assert f"the log of node node-1 after entry #22 {problem}" in result.errors


def test_a_container_that_is_not_in_a_window_is_named(node: WrittenNode, tmp_path: Path) -> None:
    result = on(node, saved(node, tmp_path, "--from", "#13"), "why", "web", "-c", "side")
    assert result.status == 1
    assert "expected one of the pod's containers: app; the history begins after entry #13, and what " in result.errors


def test_following_ends_at_the_end(node: WrittenNode, tmp_path: Path) -> None:
    path = saved(node, tmp_path)
    for words in (
        ("get", "pods", "-w"),
        ("log", "-f", "-n", "1"),
        ("events", "-w"),
        ("get", "pods", "-w", "--from", "-190s"),
        ("replay", "--follow"),
    ):
        result = on(node, path, *words)
        assert (result.status, result.errors) == (0, ""), words
        assert result.output
    assert "CrashLoopBackOff" in on(node, path, "get", "pods", "-w", "--from", "-190s").output


def test_every_command_is_tried_on_a_bundle_or_needs_a_live_node() -> None:
    assert {words[0] for words in (*READINGS, *OTHERS)} == set(COMMANDS) - LIVE


# -- what a bundle does not have --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(LIVE))
def test_commands_for_a_live_node_are_refused(node: WrittenNode, tmp_path: Path, name: str) -> None:
    assert name in COMMANDS
    path = saved(node, tmp_path)
    result = on(node, path, name)
    assert result.status == 1
    assert f"{name} needs a live node" in result.errors
    assert f"\n  {name} " not in on(node, path, "--help").output


@pytest.mark.parametrize(
    ("type_", "problem"),
    [
        ("actors", "a bundle is read-only and has no owners of shards"),
        ("cgroups", "a bundle has no cgroups; commands that read the log with --at work on it"),
    ],
)
def test_what_the_log_does_not_have_is_refused(node: WrittenNode, tmp_path: Path, type_: str, problem: str) -> None:
    node.write("qos/node", qos.NodeDescribed(node=nodes.node(name=NODE)))
    result = on(node, saved(node, tmp_path), "get", type_)
    assert (result.status, result.output) == (1, "")
    assert problem in result.errors
