"""What `wait --for` may name: a condition, a JSONPath, the end of a pod.

Comes in: the text behind `--for`, then Pods as the API has them. Goes out: whether it has come. Next: `wait`.
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
    """The text names nothing that can be waited for."""


def awaited(text: str) -> Test:
    """The test that `condition=...` or `jsonpath=...` stands for."""
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
    """Met when the path finds exactly one thing, and that is the value; without a value, when it finds anything."""
    found = _PATH.fullmatch(text)
    if found is None or not found["path"]:
        raise AwaitedError(f"found {text!r}, expected TEMPLATE or TEMPLATE=VALUE")
    value = found["value"]
    if value == "":
        raise AwaitedError(f"found {text!r}, expected a value behind the last =")
    try:
        template = relaxed(found["path"])
    except JsonPathError as error:
        raise AwaitedError(f"jsonpath: {error}") from error

    def test(pod: Object) -> bool:
        try:
            values = template.found(pod)
        except JsonPathError:
            return False  # a list that is still too short
        return bool(values) if value is None else [shown(one) for one in values] == [value]

    return test
