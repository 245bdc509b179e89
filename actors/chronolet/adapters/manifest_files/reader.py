"""A manifest file as pods: everything that is wrong with it, or all of its pods.

Comes in: a file's content and name. Goes out: `Parsed`: defaulted pods, or errors (then no pods: a file is taken
whole or not at all), and findings about what is not honoured. Next: the `manifests` actor and `apply`.
Answers to: pkg/kubelet/config/common.go, pkg/api/pod strict decoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from chronolet.adapters.manifest_files.documents import NotReadableError, documents
from chronolet.adapters.manifest_files.shape import described, fit
from chronolet.rules import honoured
from chronolet.rules.problems import Problem
from chronolet.rules.validation import problems as validate
from chronolet_schemas.podspec import (
    DEFAULT_NAMESPACE,
    WARNING,
    Finding,
    ManifestError,
    Pod,
    defaulted,
    from_plain,
)

MAX_BYTES = 3 * 1024 * 1024
"""What an API server takes in one request."""

_LISTS = {"List": None, "PodList": "Pod", "ConfigMapList": "ConfigMap", "SecretList": "Secret"}
_LATER = frozenset({"ConfigMap", "Secret"})

_Numbered = TypeVar("_Numbered", Finding, ManifestError)


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds. There are pods only where there is no error."""

    pods: tuple[Pod, ...] = ()
    errors: tuple[ManifestError, ...] = ()
    findings: tuple[Finding, ...] = ()


class _Object(NamedTuple):
    """One object of a file: in which document, at which path within it."""

    document: int
    path: str
    value: Any
    kind: str | None = None


class _Read(NamedTuple):
    """What became of one object."""

    pod: Pod | None = None
    errors: tuple[Problem, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_documents(
    content: bytes | str, name: str, *, namespace: str = DEFAULT_NAMESPACE, strict: bool = False
) -> Parsed:
    """The pods of a file called `name`; `namespace` is for pods that name none. With `strict`, findings are errors."""
    collected = _Collected(name, namespace)
    refusal = _too_large(content)
    if refusal is None:
        refusal = collected.read(_text(content))
    return collected.parsed(refusal, strict=strict)


def _too_large(content: bytes | str) -> str | None:
    size = len(content)
    return f"{size} bytes are above {MAX_BYTES}, the most that is read" if size > MAX_BYTES else None


def _text(content: bytes | str) -> str | UnicodeError:
    """UTF-8, with or without a byte order mark."""
    try:
        if isinstance(content, str):
            content.encode()
            return content.removeprefix("\ufeff")
        return content.decode("utf-8-sig")
    except UnicodeError as error:
        return error


class _Collected:
    """All that was found in one file so far."""

    def __init__(self, name: str, namespace: str) -> None:
        self._name = name
        self._namespace = namespace
        self._documents = 0
        self._pods: dict[str, Pod] = {}
        self._where: dict[str, int] = {}
        self._errors: list[ManifestError] = []
        self._findings: list[Finding] = []

    def read(self, text: str | UnicodeError) -> str | None:
        """Takes in all documents; what ended the reading early, if anything did."""
        if isinstance(text, UnicodeError):
            return f"not UTF-8: {text}"
        try:
            for document in documents(text):
                self._document(document.value, document.problems)
        except NotReadableError as error:
            return str(error)
        return None if self._documents else "holds no object, expected a v1 Pod"

    def parsed(self, refusal: str | None, *, strict: bool) -> Parsed:
        """The whole file's result."""
        several = self._documents > 1
        findings = tuple(_numbered(finding, several=several) for finding in self._findings)
        errors = [_numbered(error, several=several) for error in self._errors]
        if refusal is not None:
            errors.append(ManifestError(file=self._name, path="", message=refusal))
        if strict:
            errors += [
                ManifestError(file=self._name, path=one.path, message=one.message, document=one.document)
                for one in findings
            ]
        return Parsed(pods=() if errors else tuple(self._pods.values()), errors=tuple(errors), findings=findings)

    def _document(self, value: Any, problems: Iterable[Problem]) -> None:
        if value is None and not problems:
            return
        self._documents += 1
        self._refuse(self._documents, problems)
        for found in _objects(_Object(self._documents, "", value)):
            self._take(found, _read(found, self._namespace))

    def _take(self, found: _Object, read: _Read) -> None:
        self._refuse(found.document, read.errors)
        self._findings += [msgspec.structs.replace(finding, document=found.document) for finding in read.findings]
        if read.pod is None:
            return
        key = read.pod.key
        if key in self._pods:
            path = _below(found.path, "metadata.name")
            message = f"pod {key} stands twice in this file, first in document {self._where[key]}"
            self._refuse(found.document, [Problem(path, message)])
        self._pods.setdefault(key, read.pod)
        self._where.setdefault(key, found.document)

    def _refuse(self, document: int, problems: Iterable[Problem]) -> None:
        self._errors += [
            ManifestError(file=self._name, path=problem.path, message=problem.message, document=document)
            for problem in problems
        ]


def _numbered(one: _Numbered, *, several: bool) -> _Numbered:
    return one if several else msgspec.structs.replace(one, document=0)


def _objects(found: _Object) -> Iterator[_Object]:
    """The object itself, or the items of a List, however deep."""
    value = found.value
    kind = _kind(found)
    if not isinstance(value, dict) or kind not in _LISTS or not isinstance(value.get("items") or [], list):
        yield found
        return
    for index, item in enumerate(value.get("items") or []):
        path = _below(found.path, f"items[{index}]")
        yield from _objects(_Object(found.document, path, item, _LISTS[kind]))


def _kind(found: _Object) -> str | None:
    """What the object says it is, else what its list says."""
    kind = found.value.get("kind") if isinstance(found.value, dict) else None
    return kind if isinstance(kind, str) and kind else found.kind


def _read(found: _Object, namespace: str) -> _Read:
    if not isinstance(found.value, dict):
        problem = Problem(found.path, f"{described(found.value)}, expected a map with apiVersion, kind and metadata")
        return _Read(errors=(problem,))
    kind = _kind(found)
    wrong = tuple(_type_problems(found, kind))
    if wrong:
        return _Read(errors=wrong)
    if kind in _LATER:
        path = _below(found.path, "kind")
        return _Read(findings=(Finding(path=path, severity=WARNING, message=f"{kind}s are not honoured yet"),))
    return _read_pod(found, namespace)


def _type_problems(found: _Object, kind: str | None) -> Iterator[Problem]:
    version = found.value.get("apiVersion") or ("v1" if found.kind else None)
    path = _below(found.path, "apiVersion")
    if version is None:
        yield Problem(path, "missing, expected v1")
    elif version != "v1":
        shown = repr(version) if isinstance(version, str) else described(version)
        yield Problem(path, f"{shown} is not supported, expected v1")
    path = _below(found.path, "kind")
    if kind is None:
        yield Problem(path, "missing, expected Pod")
    elif kind in _LISTS:
        yield Problem(_below(found.path, "items"), f"{described(found.value.get('items'))}, expected a list")
    elif kind != "Pod" and kind not in _LATER:
        yield Problem(path, f"{kind!r} is not supported, expected Pod or List")


def _read_pod(found: _Object, namespace: str) -> _Read:
    content = {**found.value, "apiVersion": "v1", "kind": "Pod"}
    status = content.pop("status", None)
    fitted = fit(content, Pod)
    pod = defaulted(from_plain(fitted.value), namespace)
    wrong = fitted.problems
    if status is not None and not isinstance(status, dict):
        wrong = (*wrong, Problem("status", f"{described(status)}, expected a map"))
    errors = (*wrong, *_not_repeated(validate(pod), wrong))
    unknown = [Finding(path=one.path, severity=WARNING, message=one.message, pod=pod.key) for one in fitted.unknown]
    return _Read(
        pod=pod,
        errors=tuple(Problem(_below(found.path, one.path), one.message) for one in errors),
        findings=tuple(
            msgspec.structs.replace(one, path=_below(found.path, one.path))
            for one in (*unknown, *honoured.findings(pod))
        ),
    )


def _not_repeated(found: Iterable[Problem], wrong: tuple[Problem, ...]) -> Iterator[Problem]:
    """Without what only follows from a value that had the wrong type and was left out."""
    paths = tuple(problem.path for problem in wrong)
    volumes = any(path.startswith("spec.volumes") for path in paths)
    for problem in found:
        follows = any(problem.path == path or problem.path.startswith((f"{path}.", f"{path}[")) for path in paths)
        if not follows and not (volumes and problem.path.endswith("].name") and ".volumeMounts[" in problem.path):
            yield problem


def _below(path: str, rest: str) -> str:
    return f"{path}.{rest}" if path and rest else path or rest
