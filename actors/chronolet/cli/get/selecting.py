"""Parses label and field selectors.

Input: the values of `-l` and `--field-selector`. Output: predicates on objects in API form, or a usage error.
Next: `get`, `delete`, `wait`, `describe`, `logs`. Source: apimachinery's labels.Parse and fields.ParseSelector.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

Object = dict[str, Any]
Predicate = Callable[[Object], bool]
Options = Callable[..., Any]

FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
EVENT_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.fieldPath",
    "reason",
    "type",
    "reportingComponent",
)
_DEFAULTS = {"spec.hostNetwork": False, "spec.schedulerName": "default-scheduler"}

# Not compiled here: most commands have no selector.
_KEY = r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE = r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_HAS = rf"(?P<key>{_KEY})"
_HAS_NOT = rf"!\s*(?P<key>{_KEY})"
_EQUALS = rf"(?P<key>{_KEY})\s*(?P<sign>==|=|!=)\s*(?P<value>{_VALUE})"
_IN = rf"(?P<key>{_KEY})\s+(?P<sign>in|notin)\s*\((?P<values>[^()]*)\)"
_COMMA = r",(?![^()]*\))"


def options(function: Options) -> Options:
    """Add `-l SELECTOR` and `--field-selector SELECTOR` to a command, which receives them as predicates."""
    by_label = click.option(
        "-l", "--selector", callback=labels, metavar="SELECTOR", help="label selector: a=b, a!=b, a in (b,c), a, !a"
    )
    by_field = click.option(
        "--field-selector", callback=_fields, metavar="SELECTOR", help="field selector, such as status.phase=Running"
    )
    return by_label(by_field(function))


def labels(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> Predicate | None:
    """Convert the value of `-l` to a predicate; None if the flag is not given."""
    return None if value is None else by_labels(value)


def _fields(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> Predicate | None:
    return None if value is None else by_fields(value)


def by_labels(text: str) -> Predicate:
    """Build a predicate that is true if every requirement holds. An absent label matches no value.

    An invalid requirement is a usage error.
    """
    tests = [_requirement(part.strip()) for part in re.split(_COMMA, text) if part.strip()]

    def matches(pod: Object) -> bool:
        carried = pod["metadata"].get("labels", {})
        return all(test(carried) for test in tests)

    return matches


def _requirement(text: str) -> Callable[[Mapping[str, str]], bool]:
    if found := re.fullmatch(_EQUALS, text):
        return _among(found["key"], {found["value"]}, inside=found["sign"] != "!=")
    if found := re.fullmatch(_IN, text):
        values = {value.strip() for value in found["values"].split(",")}
        if all(re.fullmatch(_VALUE, value) for value in values):
            return _among(found["key"], values, inside=found["sign"] == "in")
    if found := re.fullmatch(_HAS_NOT, text):
        absent = found["key"]
        return lambda labels: absent not in labels
    if found := re.fullmatch(_HAS, text):
        present = found["key"]
        return lambda labels: present in labels
    raise click.BadParameter(f"found {text!r}, expected a=b, a!=b, a in (b,c), a notin (b,c), a or !a.")


def _among(key: str, values: set[str], *, inside: bool) -> Callable[[Mapping[str, str]], bool]:
    return lambda labels: (key in labels and labels[key] in values) == inside


def by_fields(text: str) -> Predicate:
    """Build a predicate that is true if every field matches. Fields that the API does not support are a usage error."""
    tests = [_field(part.strip()) for part in text.split(",") if part.strip()]
    return lambda pod: all(test(pod) for test in tests)


def _field(text: str) -> Predicate:
    path, sign, value = (part.strip() for part in _signed(text))
    if path not in {*FIELDS, *EVENT_FIELDS}:
        raise _unknown(path, FIELDS)

    def matches(item: Object) -> bool:
        fields = EVENT_FIELDS if "involvedObject" in item else FIELDS
        if path not in fields:  # a field of the other object type
            raise _unknown(path, fields)
        return (_at(item, path) == value) == (sign != "!=")

    return matches


def _unknown(path: str, fields: Sequence[str]) -> click.BadParameter:
    return click.BadParameter(f"field label not supported: {path}, expected one of {', '.join(fields)}.")


def _signed(text: str) -> tuple[str, str, str]:
    for sign in ("!=", "==", "="):
        path, found, value = text.partition(sign)
        if found:
            return path, found, value
    raise click.BadParameter(f"found {text!r}, expected FIELD=VALUE or FIELD!=VALUE.")


def _at(pod: Object, path: str) -> str:
    """Return the field's value as text. If the field is absent, return its default in the API, or an empty text."""
    section, _, name = path.partition(".")
    value = pod.get(section, {}).get(name, _DEFAULTS.get(path, "")) if name else pod.get(section, "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def chosen(*tests: Predicate | None) -> Predicate:
    """Build the conjunction of the given predicates, ignoring None."""
    given = [test for test in tests if test is not None]
    return lambda pod: all(test(pod) for test in given)
