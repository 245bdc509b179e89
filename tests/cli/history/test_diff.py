"""`chronolet diff`: what changed between two moments."""

import json
from collections.abc import Sequence

import pytest

from chronolet_schemas import pod
from tests.cli.support.histories import SECOND, UID, WEB, accepted
from tests.cli.support.written_node import NOON, WrittenNode


def at(seconds: int) -> str:
    return f"@{NOON // 1000 + seconds}"


def lines(node: WrittenNode, *words: str) -> list[str]:
    result = node.run("diff", *words)
    assert (result.status, result.errors) == (0, ""), result
    return result.output.splitlines()


def test_each_changed_field_is_a_line_below_its_object(node: WrittenNode) -> None:
    found = lines(node, "--from", at(30), "--to", at(65), "pods")
    assert found[0] == "pod/web: changed"
    assert "  status.containerStatuses[app].restartCount: 0 -> 1" in found
    assert all(line.startswith("  status.containerStatuses[app].") for line in found[1:])


def test_added_and_removed_objects_are_named(node: WrittenNode) -> None:
    assert "pod/db in data: added" in lines(node, "--from", at(65), "-A")
    node.now += SECOND
    node.write(WEB, pod.PodEnded(pod="default/web", uid=UID))
    assert lines(node, "--from", "-1s", "pods", "web") == ["pod/web: removed"]
    assert lines(node, "--from", at(1), "pod/web") == ["pod/web: removed"]


def test_events_in_between_are_lines_of_the_log(node: WrittenNode) -> None:
    every = node.run("log").output.splitlines()
    first = next(number for number, line in enumerate(every) if "08:01:00" in line)
    assert lines(node, "--from", at(30), "--to", at(60), "--show", "events")[0] == every[first]
    assert lines(node, "--from", at(30), "--show", "events") == every[first:]
    both = lines(node, "--from", at(30), "--show", "both", "pod/web")
    assert both[0] == "pod/web: changed"
    assert both[-1].startswith("2027-01-15T08:01:10.000Z")
    assert not any("pod/data/db" in line for line in both)


def test_the_same_as_one_object(node: WrittenNode) -> None:
    found = json.loads(node.run("diff", "--from", at(30), "--to", at(65), "--show", "both", "-o", "json", "-A").output)
    [changed] = found["objects"]
    assert (changed["namespace"], changed["name"], changed["change"]) == ("default", "pod/web", "changed")
    path = "status.containerStatuses[app].restartCount"
    assert {"path": path, "before": 0, "after": 1} in changed["fields"]
    assert any("before" not in one for one in changed["fields"]), "a last state was added"
    positions = [one["position"] for one in found["events"]]
    assert (found["to"], len(positions)) == (positions[-1], 6)


def test_without_a_change_there_is_a_note(node: WrittenNode) -> None:
    result = node.run("diff", "--from", "-5s")
    assert (result.output, result.errors, result.status) == ("", "No differences.\n", 0)


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (("--from", at(60), "--to", at(30)), 1, f"error: --from: found {at(60)}, expected a moment before --to"),
        (("--from", "soon"), 1, "error: --from: found 'soon', expected a duration before now"),
        (("--from", "-1s", "--to", "2031-01-01T00:00:00Z"), 1, "error: --to: 2031-01-01T00:00:00Z is in the future"),
        (("--from", "-1s", "pod/typo"), 1, 'Error from server (NotFound): pods "typo" not found'),
        ((), 2, "Missing option '--from'"),
        (("--from", "-1s", "actors"), 2, "found 'actors', expected pods or devices or images or nodes"),
    ],
)
def test_moments_and_types_that_cannot_be_compared_are_errors(
    node: WrittenNode, words: Sequence[str], status: int, error: str
) -> None:
    node.write(WEB, accepted())
    result = node.run("diff", *words)
    assert (result.output, result.status) == ("", status)
    assert error in result.errors
