"""Convert an object of a manifest to a pod or a Secret, or report what is wrong with it.

Input: the plain value of a document. Output: its objects (a List contains several), each converted separately: a pod
with defaults applied, or a Secret; problems, findings. Next: `reader`, which combines the objects of a file.
Corresponds to pkg/kubelet/config/common.go (tryDecodeSinglePod, tryDecodePodList) and strict decoding.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from chronolet.adapters.manifest_files.documents import MAX_DEPTH
from chronolet.adapters.manifest_files.secrets import read_secret
from chronolet.adapters.manifest_files.shape import described, fit
from chronolet.ports.pods.secrets import Secret
from chronolet.rules.validation import counts, honoured, size_findings
from chronolet.rules.validation.pods import problems as validate
from chronolet.rules.validation.problems import Problem
from chronolet_schemas.podspec import WARNING, Finding, Pod, defaulted, from_plain

_LISTS = {"List": None, "PodList": "Pod", "ConfigMapList": "ConfigMap", "SecretList": "Secret"}
_LATER = frozenset({"ConfigMap"})
_SHOWN = 60
_SEPARATOR = re.compile(r"[.\[]")


class Item(NamedTuple):
    """One object and its path in the document. `kind` is the kind that the enclosing list implies; None if it implies
    none.
    """

    path: str
    value: Any
    kind: str | None = None


class Converted(NamedTuple):
    """Result of converting one object. A pod that has problems is included only for its name."""

    pod: Pod | None = None
    secret: Secret | None = None
    problems: tuple[Problem, ...] = ()
    findings: tuple[Finding, ...] = ()


def objects(found: Item) -> Iterator[Item]:
    """Yield the object itself, or the items of a List, recursively."""
    kind = _kind(found)
    items = found.value.get("items") or [] if kind in _LISTS else None
    if kind is None or not isinstance(items, list):
        yield found
        return
    for index, item in enumerate(items):
        yield from objects(Item(below(found.path, f"items[{index}]"), item, _LISTS[kind]))


def read(found: Item, namespace: str, known: Iterable[Problem]) -> Converted:
    """Convert the object to a pod or a Secret. `known`: problems already found in the text of its document."""
    if not isinstance(found.value, dict):
        message = f"{described(found.value)}, expected a map with apiVersion, kind and metadata"
        return Converted(problems=(Problem(found.path, message),))
    kind = _kind(found)
    wrong = tuple(_type_problems(found, kind))
    if wrong:
        return Converted(problems=wrong)
    if kind in _LATER:
        finding = Finding(
            path=below(found.path, "kind"), severity=WARNING, message=f"{kind}s are not supported yet and are ignored"
        )
        return Converted(findings=(finding,))
    return _secret(found, namespace) if kind == "Secret" else _pod(found, namespace, known)


def _secret(found: Item, namespace: str) -> Converted:
    taken = read_secret(found.value, namespace)
    return Converted(
        secret=taken.secret,
        problems=tuple(Problem(below(found.path, one.path), one.message) for one in taken.problems),
        findings=tuple(
            msgspec.structs.replace(one, path=below(found.path, one.path), message=f"{one.message} of a Secret")
            for one in taken.findings
        ),
    )


def below(path: str, rest: str) -> str:
    """Join a path and the path of a field below it."""
    return f"{path}.{rest}" if path and rest else path or rest


def _kind(found: Item) -> str | None:
    """Return the object's own kind, or else the kind implied by its list; None if there is none or it is not text."""
    kind = found.value.get("kind") if isinstance(found.value, dict) else None
    return kind if isinstance(kind, str) and kind else None if kind else found.kind


def _type_problems(found: Item, kind: str | None) -> Iterator[Problem]:
    version, given = found.value.get("apiVersion"), found.value.get("kind")
    if version or not found.kind:
        yield from _unless("v1", version, below(found.path, "apiVersion"), ("v1",))
    if kind in _LISTS:
        yield Problem(below(found.path, "items"), f"{described(found.value.get('items'))}, expected a list")
    else:
        yield from _unless("Pod, Secret or List", kind or given, below(found.path, "kind"), ("Pod", "Secret", *_LATER))


def _unless(expected: str, value: Any, path: str, allowed: tuple[str, ...]) -> Iterator[Problem]:
    if not value:
        yield Problem(path, f"missing, expected {expected}")
    elif not isinstance(value, str):
        yield Problem(path, f"{described(value)}, expected {expected}")
    elif value not in allowed:
        yield Problem(path, f"{value[:_SHOWN]!r} is not supported, expected {expected}")


def _pod(found: Item, namespace: str, known: Iterable[Problem]) -> Converted:
    too_many = tuple(Problem(below(found.path, one.path), one.message) for one in counts.problems(found.value))
    if too_many:
        return Converted(problems=too_many)
    content = {**found.value, "apiVersion": "v1", "kind": "Pod"}
    status = content.pop("status", None)
    fitted = fit(content, Pod)
    pod = defaulted(from_plain(fitted.value), namespace)
    wrong = list(fitted.problems)
    if status is not None and not isinstance(status, dict):
        wrong.append(Problem("status", f"{described(status)}, expected a map"))
    volumes = below(found.path, "spec.volumes")
    placed = tuple(_independent((Problem(below(found.path, one.path), one.message) for one in wrong), known, volumes))
    refused = [Problem(below(found.path, one.path), one.message) for one in validate(pod)]
    unknown = [Finding(path=one.path, severity=WARNING, message=one.message, pod=pod.key) for one in fitted.unknown]
    return Converted(
        pod=pod,
        problems=(*placed, *_independent(refused, (*placed, *known), volumes)),
        findings=tuple(
            msgspec.structs.replace(one, path=below(found.path, one.path))
            for one in (*unknown, *honoured.findings(pod), *size_findings.findings(pod))
        ),
    )


def _independent(found: Iterable[Problem], wrong: Iterable[Problem], volumes: str) -> Iterator[Problem]:
    """Drop problems that are only consequences of a value that was already reported as wrong and therefore omitted."""
    paths = frozenset(problem.path for problem in wrong)
    some_volume = any(path.startswith(volumes) for path in paths)
    for problem in found:
        follows = any(above in paths for above in _with_parents(problem.path))
        of_mount = problem.path.endswith("].name") and ".volumeMounts[" in problem.path
        if not follows and not (some_volume and of_mount):
            yield problem


def _with_parents(path: str) -> Iterator[str]:
    """Yield the path and its parents, but at most `MAX_DEPTH` parents, starting with the uppermost."""
    yield path
    for found in itertools.islice(_SEPARATOR.finditer(path), MAX_DEPTH):
        yield path[: found.start()]
