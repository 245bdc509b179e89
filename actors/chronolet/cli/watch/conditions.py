"""Parses the value of `wait --for`, a condition or a JSONPath, and tests whether Pods meet it.

Input: the value of `--for`, then Pods in API form. Output: whether a Pod meets the condition. Next: `wait`.
Source: kubectl's pkg/cmd/wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from chronolet.cli.printing.jsonpath import JsonPathError, relaxed, shown

Object = dict[str, Any]
Test = Callable[[Object], bool]

CREATE, DELETE = "create", "delete"
_PATH = re.compile(r"(?P<path>\{.*\}|[^=]*)(?:=(?P<value>.*))?", re.DOTALL)


class AwaitedError(ValueError):
    """Raised if the value of `--for` is invalid."""


def awaited(text: str) -> Test:
    """Build the test for `condition=...` or `jsonpath=...`. Raises AwaitedError if the text is invalid."""
    what, _, rest = text.partition("=")
    if what == "condition" and rest:
        name, _, value = rest.partition("=")
        return _condition(name, value or "True")
    if what == "jsonpath" and rest:
        return _jsonpath(rest)
    raise AwaitedError(
        f"found {text!r}, expected condition=NAME[=VALUE], jsonpath=TEMPLATE[=VALUE], {CREATE} or {DELETE}"
    )


def _condition(name: str, value: str) -> Test:
    wanted = (name.lower(), value.lower())

    def test(pod: Object) -> bool:
        conditions = pod.get("status", {}).get("conditions", [])
        return any((one["type"].lower(), one["status"].lower()) == wanted for one in conditions)

    return test


def _jsonpath(text: str) -> Test:
    """Build a test that passes if the path yields exactly one result and this result equals the value.

    If there is no value, any result passes.
    """
    found = _PATH.fullmatch(text)
    if found is None or not found["path"]:
        raise AwaitedError(f"found {text!r}, expected TEMPLATE or TEMPLATE=VALUE")
    value = found["value"]
    if value == "":
        raise AwaitedError(f"found {text!r}, expected a value after the last =")
    try:
        template = relaxed(found["path"])
    except JsonPathError as error:
        raise AwaitedError(f"jsonpath: {error}") from error

    def test(pod: Object) -> bool:
        try:
            values = template.found(pod)
        except JsonPathError:
            return False  # an index is beyond the end of a list, which may still grow
        return bool(values) if value is None else [shown(one) for one in values] == [value]

    return test
