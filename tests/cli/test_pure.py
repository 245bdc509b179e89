"""The command line's pure parts: tables, differences, kubectl's words, names."""

from typing import Any

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chronolet.cli.apply.differences import differences
from chronolet.cli.get import pods
from chronolet.cli.history import log
from chronolet.cli.naming import asked_types, types_and_names
from chronolet.cli.printing import table
from chronolet_schemas.envelope import Entry, Position

CELLS = st.text(max_size=12)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1)))
def test_columns_are_aligned_and_no_cell_leaves_its_line(rows: list[list[str]]) -> None:
    head = [f"H{index}" for index in range(len(rows[0]))]
    printed = table.lines(head, rows)
    assert len(printed) == len(rows) + 1
    assert all(line.isprintable() for line in printed)
    for index, name in enumerate(head[1:], 1):
        column = printed[0].index(name)
        for line, row in zip(printed[1:], rows, strict=True):
            assert line[column - 3 : column].strip() == ""
            assert line[column:].startswith(table.plain(row[index]).rstrip()[: len(line) - column])


@given(PLAIN)
def test_equal_things_do_not_differ(value: Any) -> None:
    assert list(differences(value, value)) == []


@given(PLAIN, PLAIN)
def test_what_differs_has_a_line(before: Any, after: Any) -> None:
    lines = list(differences(before, after, "x"))
    assert bool(lines) == (before != after)
    assert all(line.startswith("x") for line in lines)
    assert list(differences(after, before, "x")) == [] or lines


def test_differences_name_the_path_and_both_values() -> None:
    before = {"spec": {"containers": [{"name": "a", "image": "x:1"}], "hostname": "h"}}
    after = {"spec": {"containers": [{"name": "a", "image": "x:2"}, {"name": "b"}]}}
    assert list(differences(before, after)) == [
        'spec.containers[0].image: "x:1" -> "x:2"',
        'spec.containers[1]: (none) -> {"name": "b"}',
        'spec.hostname: "h" -> (none)',
    ]


@given(st.binary(max_size=40), st.text(max_size=10), st.text(max_size=10))
@example(b"\x81\x90\x00", "", "")
def test_any_entry_is_one_printable_line(data: bytes, name: str, cause: str) -> None:
    entry = Entry(Position(1, 2), name, name, name, name, cause, data)
    assert log.as_line(entry).isprintable()
    assert "\n" not in log.as_json(entry)


def container(state: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": "c", "ready": "running" in state, "restartCount": 0, "state": state, **fields}


RUNNING = container({"running": {"startedAt": "2027-01-15T08:00:00Z"}})
COMPLETED = container({"terminated": {"reason": "Completed", "exitCode": 0}})
KILLED = container({"terminated": {"exitCode": 137}})
WAITING = container({"waiting": {"reason": "ImagePullBackOff"}})


@pytest.mark.parametrize(
    ("phase", "containers", "deleted", "word"),
    [
        ("Pending", [], False, "Pending"),
        ("Running", [RUNNING], False, "Running"),
        ("Running", [RUNNING, COMPLETED], False, "NotReady"),
        ("Running", [COMPLETED, RUNNING], False, "NotReady"),
        ("Succeeded", [COMPLETED], False, "Completed"),
        ("Failed", [KILLED], False, "ExitCode:137"),
        ("Pending", [WAITING, RUNNING], False, "ImagePullBackOff"),
        ("Running", [KILLED, WAITING], False, "ExitCode:137"),
        ("Running", [RUNNING], True, "Terminating"),
        ("Succeeded", [COMPLETED], True, "Completed"),
    ],
)
def test_the_status_is_kubectls_word(phase: str, containers: list[dict[str, Any]], deleted: bool, word: str) -> None:
    metadata = {"deletionTimestamp": "2027-01-15T08:00:00Z"} if deleted else {}
    status = {"phase": phase, "containerStatuses": containers}
    assert pods.summarized({"metadata": metadata, "spec": {}, "status": status}).status == word


def test_a_pod_of_which_a_part_has_completed_runs_or_is_not_ready() -> None:
    def word(ready: str) -> str:
        conditions = [{"type": "Ready", "status": ready}]
        status = {"phase": "Running", "containerStatuses": [RUNNING, COMPLETED], "conditions": conditions}
        return pods.summarized({"metadata": {}, "spec": {}, "status": status}).status

    assert (word("True"), word("False")) == ("Running", "NotReady")


def test_restarts_tell_when_the_last_was() -> None:
    first = container({}, restartCount=2, lastState={"terminated": {"finishedAt": "2027-01-15T08:00:00Z"}})
    second = container({}, restartCount=3, lastState={"terminated": {"finishedAt": "2027-01-15T07:00:00Z"}})
    summary = pods.summarized({"metadata": {}, "spec": {}, "status": {"containerStatuses": [first, second]}})
    assert summary.restarted(1_800_000_000_000 + 120_000) == "5 (2m ago)"
    assert pods.summarized({"metadata": {}, "spec": {}}).restarted(0) == "0"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pods"], ("pods", ())),
        (["po", "a", "b", "a"], ("pods", ("a", "b"))),
        (["pod/a", "po/b"], ("pods", ("a", "b"))),
        (["actor/pod/3"], ("actors", ("pod/3",))),
        (["actors", "pod/3", "pleg"], ("actors", ("pod/3", "pleg"))),
    ],
)
def test_names_are_read_in_both_forms(words: list[str], expected: tuple[str, tuple[str, ...]]) -> None:
    assert types_and_names(words, ("pods", "containers", "actors")) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pods,actors"], (("pods", ()), ("actors", ()))),
        (["po,actor,pods", "a"], (("pods", ("a",)), ("actors", ("a",)))),
        (["pod/a", "actor/pod/3", "pod/b"], (("pods", ("a", "b")), ("actors", ("pod/3",)))),
    ],
)
def test_several_types_are_read(words: list[str], expected: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    assert asked_types(words, ("pods", "containers", "actors")) == expected


@given(st.lists(st.sampled_from(["pods", "pod/a", "actors"]) | st.text(max_size=8), min_size=1, max_size=4))
def test_any_words_are_names_or_bad_usage(words: list[str]) -> None:
    try:
        type_, names = types_and_names(words, ("pods",))
    except click.UsageError:
        return
    assert type_ == "pods"
    assert all(names)
