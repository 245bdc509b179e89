"""Documents and lists in a manifest file: which of them become pods, and the errors for all others, with place and
reason.
"""

import json

import pytest

from chronolet.adapters.manifest_files import read_documents
from tests.adapters.manifest_files.reading import POD, errors, only, plain, pods, read


def test_a_pod_gets_defaults() -> None:
    pod = only(POD)
    assert pod.key == "default/web"
    assert pod.spec.containers[0].image_pull_policy == "IfNotPresent"
    assert read_documents(POD, "web.yaml", namespace="team").pods[0].key == "team/web"


# --- the documents of a file


def test_empty_documents_are_skipped() -> None:
    other = POD.replace("web", "other")
    assert [pod.key for pod in pods(f"---\n# nothing\n---\n{POD}---\n{other}---\n")] == ["default/web", "default/other"]


def test_one_bad_document_rejects_the_file() -> None:
    bad = POD.replace("web", "other").replace("nginx:1", "7")
    assert errors(f"{POD}---\n{bad}") == [
        "web.yaml: document 2: spec.containers[0].image: 7 is a number, expected text in quotes"
    ]


def test_a_syntax_error_does_not_hide_errors_of_earlier_documents() -> None:
    assert errors(f"{POD}    tty: 1\n---\na: [1\nb: }}") == [
        "web.yaml: document 1: spec.containers[0].tty: 1 is a number, expected true or false",
        "web.yaml: document 2: line 12, column 2: not YAML: did not find expected ',' or ']'",
    ]


def test_a_pod_defined_twice_is_an_error() -> None:
    assert errors(f"{POD}---\n{POD}") == [
        "web.yaml: document 2: metadata.name: pod default/web is defined twice in this file, first in document 1"
    ]


@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_the_pods_of_a_list_are_read(kind: str) -> None:
    items = [{"apiVersion": "v1", "kind": "Pod", **plain(name)} for name in ("a", "b")]
    found = pods(json.dumps({"apiVersion": "v1", "kind": kind, "items": items}))
    assert [pod.key for pod in found] == ["default/a", "default/b"]


def test_the_items_of_a_pod_list_need_no_kind() -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [plain("a")]})
    assert [pod.kind for pod in pods(text)] == ["Pod"]
    refused = errors(text.replace("PodList", "List"))
    assert refused == [
        "web.yaml: items[0].apiVersion: missing, expected v1",
        "web.yaml: items[0].kind: missing, expected Pod, Secret or List",
    ]


def test_errors_in_nested_lists_have_full_paths() -> None:
    inner = {"apiVersion": "v1", "kind": "PodList", "items": [plain("a"), plain("A"), 3]}
    text = json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": [inner, plain("x") | {"apiVersion": "v1", "kind": "Pod"}]}
    )
    first, second = errors(text)
    assert first.startswith("web.yaml: items[0].items[1].metadata.name: 'A' is not allowed")
    assert second == ("web.yaml: items[0].items[2]: 3 is a number, expected a map with apiVersion, kind and metadata")


def test_a_pod_defined_twice_in_a_list_is_an_error() -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [plain("a"), plain("a")]})
    assert errors(text) == [
        "web.yaml: items[1].metadata.name: pod default/a is defined twice in this file, first in document 1 at items[0]"
    ]


def test_an_empty_list_is_no_error() -> None:
    assert pods("apiVersion: v1\nkind: List\nitems:\n") == ()


@pytest.mark.parametrize("items", ["{a: b}", "text", "7"])
def test_items_that_are_not_a_list_are_an_error(items: str) -> None:
    (error,) = errors(f"apiVersion: v1\nkind: List\nitems: {items}\n")
    assert error.startswith("web.yaml: items: ")
    assert error.endswith("expected a list")


def test_an_unsupported_kind_next_to_a_pod_is_a_finding() -> None:
    kind = "ConfigMap"
    parsed = read(f"{POD}---\napiVersion: v1\nkind: {kind}\nmetadata:\n  name: c\nstringData:\n  a: hunter2\n")
    assert [pod.key for pod in parsed.pods] == ["default/web"]
    (finding,) = parsed.findings
    assert (finding.document, finding.path, finding.severity, finding.pod) == (2, "kind", "warning", "")
    assert str(finding) == f"kind: {kind}s are not supported yet and are ignored"
    assert "hunter2" not in repr(parsed)


# --- other content


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["holds no object, expected a v1 Pod"]),
        ("# only a comment\n---\n---\n", ["holds no object, expected a v1 Pod"]),
        ("just text", ["'just text' is text, expected a map with apiVersion, kind and metadata"]),
        ("- a", ["found a list, expected a map with apiVersion, kind and metadata"]),
        ("7", ["7 is a number, expected a map with apiVersion, kind and metadata"]),
        ("yes", ["true is a boolean, expected a map with apiVersion, kind and metadata"]),
        ("{}", ["apiVersion: missing, expected v1", "kind: missing, expected Pod, Secret or List"]),
        ("apiVersion: v1", ["kind: missing, expected Pod, Secret or List"]),
        ("kind: Pod", ["apiVersion: missing, expected v1"]),
        ("apiVersion: v2\nkind: Pod", ["apiVersion: 'v2' is not supported, expected v1"]),
        (
            "apiVersion: 1\nkind: 2",
            ["apiVersion: 1 is a number, expected v1", "kind: 2 is a number, expected Pod, Secret or List"],
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment",
            [
                "apiVersion: 'apps/v1' is not supported, expected v1",
                "kind: 'Deployment' is not supported, expected Pod, Secret or List",
            ],
        ),
    ],
)
def test_other_content_than_a_pod_is_an_error(text: str, expected: list[str]) -> None:
    assert errors(text) == [f"web.yaml: {line}" for line in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1\n b: }", "line 2, column 3: not YAML: did not find expected ',' or ']'"),
        ("a:\n\tb: 1", "line 2, column 1: not YAML: found character that cannot start any token"),
        ("%FOO\n---\n", "line 1, column 5: not YAML: found unknown directive name"),
        ("a: \0", "not YAML: control characters are not allowed (0 at 3)"),
        ("a: \x07", "not YAML: control characters are not allowed (7 at 3)"),
        ('a: "\\q"', "line 1, column 5: not YAML: found unknown escape character"),
        ("a: *b", "line 1: alias *b has no anchor before it"),
        ("a: &a [*a]", "line 1: alias *a has no anchor before it"),
        (b"a: \xff", "not UTF-8: invalid start byte"),
        (b"\xff\xfea\0", "not UTF-8: invalid start byte"),
    ],
)
def test_malformed_yaml_is_an_error(text: str | bytes, expected: str) -> None:
    assert errors(text) == [f"web.yaml: {expected}"]


def test_a_text_with_a_surrogate_is_an_error() -> None:
    (error,) = errors("a: \ud800")
    assert error.startswith("web.yaml: not UTF-8: ")


def test_a_byte_order_mark_is_skipped() -> None:
    assert pods("\ufeff" + POD) == pods(POD) == pods(b"\xef\xbb\xbf" + POD.encode())
