"""Matches a pod's nodeSelector and required node affinity against the node's labels and name. Pure.

Input: a PodSpec, labels, the node's name. Output: a description of the mismatch, empty if the node matches. Next:
`pod` and `apply`. Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity (GetRequiredNodeAffinity),
k8s.io/apimachinery/pkg/labels (Requirement.Matches).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chronolet_schemas.podspec import Object, PodSpec

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_HERE = f"affinity.nodeAffinity.{_REQUIRED}"


def mismatch(spec: PodSpec, labels: Mapping[str, str], name: str) -> str:
    """Describe why the node does not match; empty if it does. `nodeSelector` and required node affinity must both match
    if present.
    """
    lacking = [f"{key}={value}" for key, value in spec.node_selector.items() if labels.get(key) != value]
    if lacking:
        return f"spec.nodeSelector: the node does not have the label {', '.join(lacking)}"
    if wrong := next(problems(spec), None):
        return f"spec.{wrong[0]}: {wrong[1]}"
    required = _required(spec)
    if required is None or any(_matches(term, labels, name) for term in required["nodeSelectorTerms"]):
        return ""
    return f"spec.{_HERE}: no term matches the labels of node {name}"


def _required(spec: PodSpec) -> Any:
    """Return the required node affinity as written in the manifest; None if there is none. If `nodeAffinity` is not a
    map, return it instead, so that `problems` reports it.
    """
    affinity = (spec.affinity or {}).get("nodeAffinity") or {}
    return affinity.get(_REQUIRED) if isinstance(affinity, dict) else affinity


def _matches(term: Object, labels: Mapping[str, str], name: str) -> bool:
    """Return whether all requirements of a term hold; a term without requirements matches no node."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return _all_hold(expressions, labels) and _all_hold(fields, {"metadata.name": name})


def _all_hold(requirements: Iterable[Object], values: Mapping[str, str]) -> bool:
    return all(_holds(one, values.get(one["key"])) for one in requirements)


def _holds(requirement: Object, found: str | None) -> bool:
    """Return whether a requirement holds. `found`: the node's value for the key, None if it has none."""
    wanted: Sequence[str] = requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return found in wanted
        case "NotIn":
            return found not in wanted
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case operator:
            return _compares(operator, found or "", int(wanted[0]))


def _compares(operator: str, found: str, wanted: int) -> bool:
    """Return whether Gt or Lt holds; False if the node's value is not a number."""
    try:
        have = int(found)
    except ValueError:
        return False
    return have > wanted if operator == "Gt" else have < wanted


def problems(spec: PodSpec) -> Iterator[tuple[str, str]]:
    """Yield the problems with the required node affinity: the path below `spec`, and what was found and expected."""
    required = _required(spec)
    if required is None:
        return
    terms = required.get("nodeSelectorTerms") if isinstance(required, dict) else None
    if not isinstance(terms, list) or not terms:
        yield f"{_HERE}.nodeSelectorTerms", "expected a list of at least one term"
        return
    for index, term in enumerate(terms):
        yield from _term_problems(f"{_HERE}.nodeSelectorTerms[{index}]", term)


def _term_problems(path: str, term: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(term, dict):
        yield path, f"found {term!r}, expected matchExpressions or matchFields"
        return
    for field in ("matchExpressions", "matchFields"):
        found = term.get(field) or []
        for index, one in enumerate(found if isinstance(found, list) else (found,)):
            if wrong := _wrong(one, of_field=field == "matchFields"):
                yield f"{path}.{field}[{index}]", wrong


def _wrong(one: Any, *, of_field: bool) -> str:
    """Return the problem with one requirement; empty if there is none."""
    if not isinstance(one, dict) or not isinstance(one.get("key"), str) or not one["key"]:
        return f"found {one!r}, expected a key, an operator and values"
    operator, values = one.get("operator"), one.get("values") or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return f"values: found {values!r}, expected a list of strings"
    if of_field and (one["key"], operator in ("In", "NotIn"), len(values)) != ("metadata.name", True, 1):
        return "expected key metadata.name, operator In or NotIn, and one value"
    return _wrong_values(operator, values)


def _wrong_values(operator: Any, values: Sequence[str]) -> str:
    match operator:
        case "In" | "NotIn":
            return "" if values else f"operator {operator} needs at least one value"
        case "Exists" | "DoesNotExist":
            return f"operator {operator} takes no values, found {values!r}" if values else ""
        case "Gt" | "Lt":
            whole = len(values) == 1 and values[0].removeprefix("-").isdecimal()
            return "" if whole else f"operator {operator} needs one whole number, found {values!r}"
        case _:
            return f"operator: found {operator!r}, expected In, NotIn, Exists, DoesNotExist, Gt or Lt"
