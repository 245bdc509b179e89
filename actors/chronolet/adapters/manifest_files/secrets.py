"""Convert an object of a manifest to a Secret with registry credentials, or report what is wrong with it.

Input: the plain value of a document. Output: `Secret`, problems, findings. Next: `objects`. Corresponds to
pkg/apis/core/validation (ValidateSecret). Messages name only paths and types, never a Secret's content.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from chronolet.ports.pods.secrets import Secret
from chronolet.rules.names import names
from chronolet.rules.names.registry_keys import SECRETS, BadDockerConfig, of_secret
from chronolet.rules.validation.problems import Problem
from chronolet_schemas.podspec import WARNING, Finding

_EXPECTED: Final = " or ".join(SECRETS)
_FIELDS = frozenset({"apiVersion", "kind", "metadata", "type", "data", "stringData", "immutable"})
_MOST_BYTES = 1024 * 1024
_SHOWN = 60


class ReadSecret(NamedTuple):
    """Result of converting one object. `secret` is None if there are problems."""

    secret: Secret | None
    problems: tuple[Problem, ...]
    findings: tuple[Finding, ...]


def read_secret(value: Mapping[str, Any], namespace: str) -> ReadSecret:
    """Convert the object to a Secret. The paths of problems and findings are relative to the object."""
    problems: list[Problem] = []
    metadata = value.get("metadata")
    named = _named(metadata if isinstance(metadata, dict) else {}, namespace, problems)
    type_ = value.get("type") or "Opaque"
    data = {**_data(value.get("data"), problems), **_string_data(value.get("stringData"), problems)}
    if sum(map(len, data.values())) > _MOST_BYTES:
        problems.append(Problem("data", f"holds more than {_MOST_BYTES} bytes"))
    if isinstance(type_, str) and type_ in SECRETS:
        problems += tuple(_content_problems(type_, data, problems))
    else:
        shown = repr(type_[:_SHOWN]) if isinstance(type_, str) else "a value that is not text"
        problems.insert(0, Problem("type", f"{shown} is not supported yet, expected {_EXPECTED}"))
    findings = (
        Finding(path=field, severity=WARNING, message="unknown field") for field in value if field not in _FIELDS
    )
    secret = None if problems else Secret(namespace=named[0], name=named[1], type=str(type_), data=data)
    return ReadSecret(secret, tuple(problems), tuple(findings))


def _named(metadata: Mapping[str, Any], namespace: str, problems: list[Problem]) -> tuple[str, str]:
    """Return namespace and name, and append what is wrong with them to `problems`."""
    found = (metadata.get("namespace") or namespace, metadata.get("name"))
    checks = (("metadata.namespace", names.label_problem), ("metadata.name", names.subdomain_problem))
    for (path, check), text in zip(checks, found, strict=True):
        if not text:
            problems.append(Problem(path, "missing, expected a name"))
        elif not isinstance(text, str):
            problems.append(Problem(path, "is not text, expected a name"))
        elif problem := check(text):
            problems.append(Problem(path, problem))
    return str(found[0]), str(found[1])


def _data(value: Any, problems: list[Problem]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for key, text in _entries("data", value, problems):
        try:
            # Go ignores line breaks in base64.
            found[key] = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
        except ValueError:
            problems.append(Problem(f"data[{key}]", "is not base64"))
    return found


def _string_data(value: Any, problems: list[Problem]) -> dict[str, bytes]:
    return {key: text.encode() for key, text in _entries("stringData", value, problems)}


def _entries(field: str, value: Any, problems: list[Problem]) -> Iterator[tuple[str, str]]:
    if value is not None and not isinstance(value, dict):
        problems.append(Problem(field, "is not a map, expected names and values"))
        return
    for key, text in (value or {}).items():
        if text is None:
            yield str(key), ""
        elif isinstance(text, str):
            yield str(key), text
        else:
            problems.append(Problem(f"{field}[{key}]", "is not text, expected it in quotes"))


def _content_problems(type_: str, data: Mapping[str, bytes], known: list[Problem]) -> Iterator[Problem]:
    """Yield the problems of the credentials, unless their field already has a problem."""
    field = SECRETS[type_][0]
    path = f"data[{field}]"
    if any(problem.path in (path, f"stringData[{field}]", "data", "stringData") for problem in known):
        return
    if not data.get(field):
        yield Problem(path, "missing, expected a Docker configuration with the credentials of registries")
        return
    try:
        of_secret(type_, data)
    except BadDockerConfig as error:
        yield Problem(path, str(error))
