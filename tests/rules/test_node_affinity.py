"""Node selectors and required node affinity, with all operators."""

from __future__ import annotations

from typing import Any

import pytest

from chronolet.rules.node_affinity import mismatch, problems
from chronolet_schemas.podspec import PodSpec

LABELS = {"disk": "ssd", "cores": "8", "zone": "", "word": "x"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def spec(*terms: Any, **more: Any) -> PodSpec:
    return PodSpec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}, **more)


def term(key: str, operator: str, *values: str, field: str = "matchExpressions") -> dict[str, Any]:
    return {field: [{"key": key, "operator": operator, "values": list(values)}]}


def test_a_node_selector_needs_every_label() -> None:
    assert mismatch(PodSpec(), {}, "n") == ""
    assert mismatch(PodSpec(node_selector={"disk": "ssd", "zone": ""}), LABELS, "n") == ""
    found = mismatch(PodSpec(node_selector={"disk": "hdd", "gpu": "yes"}), LABELS, "n")
    assert found == "spec.nodeSelector: the node does not have the label disk=hdd, gpu=yes"


@pytest.mark.parametrize(
    ("one", "matches"),
    [
        (term("disk", "In", "hdd", "ssd"), True),
        (term("disk", "In", "hdd"), False),
        (term("gone", "In", "ssd"), False),
        (term("disk", "NotIn", "ssd"), False),
        (term("disk", "NotIn", "hdd"), True),
        (term("gone", "NotIn", "ssd"), True),
        (term("zone", "Exists"), True),
        (term("gone", "Exists"), False),
        (term("gone", "DoesNotExist"), True),
        (term("zone", "DoesNotExist"), False),
        (term("cores", "Gt", "7"), True),
        (term("cores", "Gt", "8"), False),
        (term("cores", "Lt", "9"), True),
        (term("cores", "Lt", "-1"), False),
        (term("word", "Gt", "1"), False),
        (term("gone", "Lt", "1"), False),
        (term("metadata.name", "In", "n", field="matchFields"), True),
        (term("metadata.name", "NotIn", "n", field="matchFields"), False),
        ({}, False),
        ({**term("disk", "Exists"), **term("metadata.name", "In", "m", field="matchFields")}, False),
    ],
)
def test_terms_and_what_they_match(one: dict[str, Any], *, matches: bool) -> None:
    assert list(problems(spec(one))) == []
    found = mismatch(spec(one), LABELS, "n")
    assert found == ("" if matches else f"spec.affinity.nodeAffinity.{REQUIRED}: no term matches the labels of node n")


def test_one_term_of_several_suffices_and_the_selector_counts_too() -> None:
    both = spec(term("gone", "Exists"), term("disk", "Exists"))
    assert mismatch(both, LABELS, "n") == ""
    assert mismatch(spec(term("disk", "Exists"), node_selector={"a": "b"}), LABELS, "n") != ""
    assert mismatch(PodSpec(affinity={"podAffinity": {}}), LABELS, "n") == ""


@pytest.mark.parametrize(
    ("required", "where", "what"),
    [
        ({}, "nodeSelectorTerms", "expected a list of at least one term"),
        ("x", "nodeSelectorTerms", "expected a list of at least one term"),
        ({"nodeSelectorTerms": ["x"]}, "nodeSelectorTerms[0]", "found 'x', expected matchExpressions or matchFields"),
        (
            {"nodeSelectorTerms": [{"matchExpressions": "x"}]},
            "nodeSelectorTerms[0].matchExpressions[0]",
            "found 'x', expected a key, an operator and values",
        ),
        (
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]}]},
            "nodeSelectorTerms[0].matchExpressions[0]",
            "values: found [1], expected a list of strings",
        ),
        (
            {"nodeSelectorTerms": [term("metadata.uid", "In", "a", field="matchFields")]},
            "nodeSelectorTerms[0].matchFields[0]",
            "expected key metadata.name, operator In or NotIn, and one value",
        ),
        (
            {"nodeSelectorTerms": [term("a", "In")]},
            "nodeSelectorTerms[0].matchExpressions[0]",
            "operator In needs at least one value",
        ),
        (
            {"nodeSelectorTerms": [term("a", "Exists", "b")]},
            "nodeSelectorTerms[0].matchExpressions[0]",
            "operator Exists takes no values, found ['b']",
        ),
        (
            {"nodeSelectorTerms": [term("a", "Gt", "b")]},
            "nodeSelectorTerms[0].matchExpressions[0]",
            "operator Gt needs one whole number, found ['b']",
        ),
        (
            {"nodeSelectorTerms": [term("a", "in", "b")]},
            "nodeSelectorTerms[0].matchExpressions[0]",
            "operator: found 'in', expected In, NotIn, Exists, DoesNotExist, Gt or Lt",
        ),
    ],
)
def test_an_invalid_term_is_reported_and_never_matches(required: Any, where: str, what: str) -> None:
    wrong = PodSpec(affinity={"nodeAffinity": {REQUIRED: required}})
    path = f"affinity.nodeAffinity.{REQUIRED}.{where}"
    assert list(problems(wrong)) == [(path, what)]
    assert mismatch(wrong, LABELS, "n") == f"spec.{path}: {what}"
    assert list(problems(PodSpec(affinity={"nodeAffinity": "x"}))) != []
