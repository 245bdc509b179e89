"""Label and field selectors, `--sort-by` and `--show-labels`."""

from typing import Any

import click
import msgspec
import pytest

from chronolet.cli.get.selecting import by_fields, by_labels
from tests.cli.support.histories import accepted
from tests.cli.support.written_node import WrittenNode, columns

POD: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web", "tier": "front", "empty": ""}},
    "spec": {"nodeName": "node-1", "hostNetwork": True},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app=web,tier=back", False),
        ("app!=web", False),
        ("other!=web", True),
        ("app", True),
        ("!app", False),
        ("! other", True),
        ("app in (db, web)", True),
        ("app in (db),tier", False),
        ("app notin (db,web)", False),
        ("other notin (db,web),app", True),
        ("empty=", True),
        ("empty in ()", True),
        ("a.b/c-d=e", False),
    ],
)
def test_a_label_selector_matches_pods_that_meet_all_requirements(text: str, expected: bool) -> None:
    assert by_labels(text)(POD) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("metadata.name=web", True),
        ("metadata.name==web,status.phase!=Failed", True),
        ("status.phase=Pending", False),
        ("spec.nodeName=node-1", True),
        ("spec.hostNetwork=true", True),
        ("spec.schedulerName=default-scheduler", True),
        ("status.podIP=", True),
    ],
)
def test_a_field_selector_matches_pods_that_meet_all_requirements(text: str, expected: bool) -> None:
    assert by_fields(text)(POD) is expected


@pytest.mark.parametrize("text", ["a=b=c", "a in b", "a in (b", "=b", "a in (b,*)", "a b"])
def test_an_invalid_label_selector_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.BadParameter):
        by_labels(text)


@pytest.mark.parametrize("text", ["metadata.name", "spec.image=x", "name=web"])
def test_an_invalid_field_selector_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.BadParameter):
        by_fields(text)


@pytest.fixture
def node() -> WrittenNode:
    """A node with the pods one, two and three, accepted in that order. The pods two and three have labels."""
    node = WrittenNode()
    for name, labels in (("one", {}), ("two", {"b": "2", "a": "1"}), ("three", {"a": "1"})):
        begun = accepted(name, priority=len(name))
        metadata = msgspec.structs.replace(begun.manifest.metadata, labels=labels)
        spec = msgspec.structs.replace(begun.manifest, metadata=metadata)
        node.write(f"pod/default/{name}", msgspec.structs.replace(begun, manifest=spec))
        node.now += 1_000
    return node


def names(node: WrittenNode, *words: str) -> list[str]:
    result = node.run("get", "pods", "-o", "name", *words)
    assert (result.status, result.errors) == (0, ""), result
    return [line.removeprefix("pod/") for line in result.output.splitlines()]


def test_get_lists_the_selected_objects(node: WrittenNode) -> None:
    assert names(node, "-l", "a=1") == ["three", "two"]
    assert names(node, "-l", "a=1", "--field-selector", "metadata.name!=two") == ["three"]
    assert node.run("get", "pods", "-l", "a=2").errors == "No resources found in default namespace.\n"
    assert columns(node.run("get", "containers", "--no-headers", "-l", "b").output)[0][:2] == ["app", "two"]


def test_get_sorts_by_a_jsonpath(node: WrittenNode) -> None:
    assert names(node, "--sort-by", ".metadata.name") == ["one", "three", "two"]
    assert names(node, "--sort-by={.spec.priority}") == ["one", "two", "three"], (
        "by value, equal ones in their previous order"
    )
    assert names(node, "--sort-by", ".metadata.labels.b") == ["one", "three", "two"], (
        "objects without a value come first"
    )
    assert names(node, "--sort-by", ".spec.containers[7].name") == ["one", "three", "two"]
    assert node.run("get", "pods", "--sort-by", "{").status == 2


def test_show_labels_adds_a_column(node: WrittenNode) -> None:
    rows = columns(node.run("get", "pods", "--show-labels", "-o", "wide").output)
    assert rows[0][-1] == "LABELS"
    assert [row[-1] for row in rows[1:]] == ["<none>", "a=1", "a=1,b=2"]


@pytest.mark.parametrize(
    "words", [["pods", "web", "-l", "a"], ["pods", "web", "-A"], ["actors", "-l", "a"], ["pods", "-l", "a=b=c"]]
)
def test_invalid_combinations_of_selectors_are_usage_errors(node: WrittenNode, words: list[str]) -> None:
    assert node.run("get", *words).status == 2
