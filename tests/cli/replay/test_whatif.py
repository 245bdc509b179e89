"""`chronolet replay --set` and `--manifest`: what is printed, and which questions are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from chronolet_schemas import podspec
from chronolet_schemas.podspec import ExecAction, Pod, Probe
from tests.cli.support.busy_node import busy
from tests.cli.support.written_node import WrittenNode
from tests.deciders.pod.life import POD, container, manifest
from tests.support.recorded_node import RecordedNode

FIELD = "pod/web/app.livenessProbe.failureThreshold"


@pytest.fixture(scope="module")
def node() -> WrittenNode:
    """A node on which a container was stopped twice, each time after its second failed probe."""
    written = WrittenNode()

    def set_clock(now: int) -> None:
        written.now = now

    recorded = RecordedNode(written.server, set_clock)
    recorded.start()
    recorded.apply(web())
    for outcome in ("success", "failure", "failure", "failure", "failure", "success"):
        recorded.passes(10_000)
        recorded.probe(outcome, POD)
    return written


def web(threshold: int = 2, image: str = "busybox:1") -> Pod:
    probe = Probe(exec=ExecAction(command=("x",)), failure_threshold=threshold)
    return manifest(container(image=image, liveness_probe=probe))


def written(tmp_path: Path, one: Pod) -> str:
    path = tmp_path / "web.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **podspec.plain(one)}))
    return str(path)


def test_both_runs_side_by_side(node: WrittenNode) -> None:
    result = node.run("replay", "--set", f"{FIELD}=4")
    assert (result.status, result.errors) == (0, "")
    head, _, restarts, stops, _, until, _, columns, *rows = result.output.splitlines()
    assert head == f"What if {FIELD}=4: 9 decisions made again."
    assert restarts == "pod/default/web/app: 1 restart instead of 2 (estimate)"
    assert stops == "pod/default/web/app: 1 stop for a failed probe instead of 2 (estimate)"
    assert until.startswith("Exact up to 2027-01-15T08:00:30Z, when the outside world begins to differ; an estimate")
    assert columns.split() == ["TIME", "EVENT", "WHAT", "HAPPENED", "WHAT", "IF", "CERTAINTY"]
    assert {row.split()[-1] for row in rows} == {"exact", "estimate"}
    (first,) = (row for row in rows if "stopped: " in row and row.endswith("exact"))
    assert first.split()[-2:] == ["-", "exact"]  # it is not stopped with the change


def test_as_json(node: WrittenNode) -> None:
    found = json.loads(node.run("replay", "--set", f"{FIELD}=4", "-o", "json").output)
    assert found["changes"] == [f"{FIELD}=4"]
    assert (found["certainty"], found["assumed"], found["unknown"]) == ("estimate", False, [])
    assert found["exact_until"] == 1_800_000_030_000
    assert {(one["what"], one["recorded"], one["changed"]) for one in found["counts"]} == {
        ("restarts", 2, 1),
        ("stops for a failed probe", 2, 1),
    }
    assert found["rows"][0] == {
        "at": 1_800_000_000_000,
        "position": found["rows"][0]["position"],
        "subject": "pod/default/web/app",
        "recorded": "started (attempt 0)",
        "changed": "started (attempt 0)",
        "certainty": "exact",
    }


def test_one_decision(node: WrittenNode) -> None:
    heads = {
        node.run("replay", "--set", f"{FIELD}=4", "--to", f"#{end}").output.partition("\n")[0] for end in range(40)
    }
    assert f"What if {FIELD}=4: 1 decision made again." in heads
    assert f"What if {FIELD}=4: 2 decisions made again." in heads


def test_a_change_that_changes_nothing(node: WrittenNode) -> None:
    result = node.run("replay", "--set", f"{FIELD}=2")
    assert "pod/default/web/app: 2 restarts, as it happened (exact)" in result.output
    assert "The outside world does not differ in this range." in result.output
    assert "estimate" not in result.output


def test_a_range_ends_before_the_difference(node: WrittenNode) -> None:
    result = node.run("replay", "--set", f"{FIELD}=4", "--to", "2027-01-15T08:00:25Z")
    assert "The outside world does not differ in this range." in result.output
    assert "failed, 1 of 2" in result.output
    assert "failed, 1 of 4" in result.output


def test_a_range_may_end_within_a_decision(node: WrittenNode) -> None:
    for number in range(20, 60):
        result = node.run("replay", "--set", f"{FIELD}=2", "--to", f"#{number}")
        assert "The outside world does not differ in this range.\n" in result.output, number
        assert "instead of" not in result.output, number
        assert "estimate" not in result.output, number


def test_another_manifest(node: WrittenNode, tmp_path: Path) -> None:
    path = written(tmp_path, web(4))
    by_manifest = json.loads(node.run("replay", "--manifest", path, "-o", "json").output)
    by_setting = json.loads(node.run("replay", "--set", f"{FIELD}=4", "-o", "json").output)
    assert by_manifest["changes"] == [f"manifest {path}"]
    assert by_manifest["rows"] == by_setting["rows"]


def test_a_manifest_with_another_image_is_refused(node: WrittenNode, tmp_path: Path) -> None:
    result = node.run("replay", "--manifest", written(tmp_path, web(image="busybox:9")))
    assert result.status == 1
    assert "--manifest: pod/default/web: spec.containers[app].image: found 'busybox:9' instead of" in result.errors


def test_a_bundle_answers_as_the_node_does(node: WrittenNode, tmp_path: Path) -> None:
    whole, part = str(tmp_path / "whole.bundle"), str(tmp_path / "part.bundle")
    assert node.run("bundle", "save", whole).status == 0
    question = ("replay", "--set", f"{FIELD}=4")
    opened = node.run("bundle", "open", whole, *question)
    assert (opened.status, opened.output) == (0, node.run(*question).output)
    assert node.run("bundle", "save", part, "--from", "#20").status == 0
    window = node.run("bundle", "open", part, *question)
    assert (window.status, window.output) == (1, "")
    assert "needs the log from its beginning, and this one is a window of it: save a bundle without" in window.errors


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("pod/gone/app.livenessProbe.failureThreshold=2", "--set: pod/default/gone: found no such pod between the two"),
        ("image-gc-high-threshold=70", "--set: the log has no decision of the actor image_gc between the two moments"),
        (
            "image-gc-hi-threshold=70",
            "found an unknown setting, expected one of the node agent's; did you mean image",
        ),
        (
            "image-gc-high-threshold=lots",
            "image-gc-high-threshold: found 'lots', expected a whole number",
        ),
        ("image-gc-period=1h", "does not follow from what the log records; settings that can be changed: "),
        ("pod/web/app.livenessProbe.periodSeconds=5", "but the log has only the outcomes of the probes that ran"),
        ("pod/web/app.livenessProbe.failureThreshold=0", "found '0', expected a whole number of at least 1"),
        (f"{FIELD}={'9' * 5000}", "expected a whole number of at least 1"),
        ("nonsense", "found 'nonsense', expected NAME=VALUE, such as image-gc-high-threshold=70"),
    ],
)
def test_what_cannot_be_answered(node: WrittenNode, change: str, error: str) -> None:
    result = node.run("replay", "--set", change)
    assert (result.status, result.output) == (1, "")
    assert error in result.errors, result.errors


def test_a_log_that_records_no_inputs() -> None:
    result = busy().run("replay", "--set", "max-container-restart-period=20s")
    assert result.status == 1
    assert "the log does not tell what the decisions between the two moments were made from" in result.errors


@pytest.mark.parametrize(
    "other", [("-f",), ("--speed", "2"), ("--step",), ("--only", "pods"), ("--at", "-1m"), ("--verify",)]
)
def test_options_that_do_not_go_with_it(node: WrittenNode, other: tuple[str, ...]) -> None:
    result = node.run("replay", "--set", "image-gc-high-threshold=70", *other)
    assert result.status == 2
    assert "expected one of them" in result.errors
