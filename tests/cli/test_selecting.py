"""Which pods a selector means, and in what order they are shown."""

from typing import Any

import click
import msgspec
import pytest

from chronolet.cli.get.selecting import by_fields, by_labels
from tests.cli.histories import accepted
from tests.cli.written import WrittenNode, columns

POD: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web", "tier": "front", "empty": ""}},
    "spec": {"nodeName": "node-1", "hostNetwork": True},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("text", "wanted"),
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
def test_labels(text: str, wanted: bool) -> None:
    assert by_labels(text)(POD) is wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
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
def test_fields(text: str, wanted: bool) -> None:
    assert by_fields(text)(POD) is wanted


@pytest.mark.parametrize("text", ["a=b=c", "a in b", "a in (b", "=b", "a in (b,*)", "a b"])
def test_what_is_no_selector_of_labels(text: str) -> None:
    with pytest.raises(click.BadParameter):
        by_labels(text)


@pytest.mark.parametrize("text", ["metadata.name", "spec.image=x", "name=web"])
def test_what_is_no_selector_of_fields(text: str) -> None:
    with pytest.raises(click.BadParameter):
        by_fields(text)


@pytest.fixture
def node() -> WrittenNode:
    """One, two and three, accepted in that order; two carries labels."""
    written = WrittenNode()
    for name, labels in (("one", {}), ("two", {"b": "2", "a": "1"}), ("three", {"a": "1"})):
        begun = accepted(name, priority=len(name))
        metadata = msgspec.structs.replace(begun.manifest.metadata, labels=labels)
        spec = msgspec.structs.replace(begun.manifest, metadata=metadata)
        written.write(f"pod/default/{name}", msgspec.structs.replace(begun, manifest=spec))
        written.now += 1_000
    return written


def names(node: WrittenNode, *words: str) -> list[str]:
    said = node.run("get", "pods", "-o", "name", *words)
    assert (said.status, said.err) == (0, ""), said
    return [line.removeprefix("pod/") for line in said.out.splitlines()]


def test_get_shows_what_is_selected(node: WrittenNode) -> None:
    assert names(node, "-l", "a=1") == ["three", "two"]
    assert names(node, "-l", "a=1", "--field-selector", "metadata.name!=two") == ["three"]
    assert node.run("get", "pods", "-l", "a=2").err == "No resources found in default namespace.\n"
    assert columns(node.run("get", "containers", "--no-headers", "-l", "b").out)[0][:2] == ["app", "two"]


def test_get_sorts_by_whatever_is_asked_for(node: WrittenNode) -> None:
    assert names(node, "--sort-by", ".metadata.name") == ["one", "three", "two"]
    assert names(node, "--sort-by={.spec.priority}") == ["one", "two", "three"], "by size, then as it was"
    assert names(node, "--sort-by", ".metadata.labels.b") == ["one", "three", "two"], "what has none comes first"
    assert names(node, "--sort-by", ".spec.containers[7].name") == ["one", "three", "two"]
    assert node.run("get", "pods", "--sort-by", "{").status == 2


def test_labels_have_a_column_if_asked_for(node: WrittenNode) -> None:
    rows = columns(node.run("get", "pods", "--show-labels", "-o", "wide").out)
    assert rows[0][-1] == "LABELS"
    assert [row[-1] for row in rows[1:]] == ["<none>", "a=1", "a=1,b=2"]


@pytest.mark.parametrize(
    "words", [["pods", "web", "-l", "a"], ["pods", "web", "-A"], ["actors", "-l", "a"], ["pods", "-l", "a=b=c"]]
)
def test_what_does_not_go_together(node: WrittenNode, words: list[str]) -> None:
    assert node.run("get", *words).status == 2
