"""Parse a manifest file: return all its errors, or all its pods and Secrets.

Input: a file's content and name. Output: `Parsed`: pods with defaults applied, and Secrets, or errors (then nothing
else: a file is accepted as a whole or not at all); findings about fields that are not honoured. Next: the `manifests`
actor and `apply`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec

from chronolet.adapters.manifest_files.documents import NotReadableError, documents
from chronolet.adapters.manifest_files.objects import Converted, Item, below, objects, read
from chronolet.ports.pods.secrets import Secret
from chronolet.rules.validation.problems import Problem
from chronolet_schemas.podspec import DEFAULT_NAMESPACE, WARNING, Finding, ManifestError, Pod

MAX_BYTES = 3 * 1024 * 1024
"""Maximum size of a file: an API server's limit for one request."""

MAX_REPORTED = 100
"""Maximum number of errors, and of findings, reported per file; any more are only counted."""

_PATH_SHOWN = 300

_One = TypeVar("_One", Finding, ManifestError)


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a file. It has pods and Secrets only if there are no errors."""

    pods: tuple[Pod, ...] = ()
    secrets: tuple[Secret, ...] = ()
    errors: tuple[ManifestError, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_documents(
    content: bytes | str, name: str, *, namespace: str = DEFAULT_NAMESPACE, strict: bool = False
) -> Parsed:
    """Parse the content of the file `name`. `namespace` is for objects that name none. With `strict`, each finding is
    also an error.
    """
    file = _File(name, namespace)
    if len(content) > MAX_BYTES:
        file.refuse(f"is larger than the limit of {MAX_BYTES} bytes")
        return file.parsed(strict=strict)
    try:
        file.read(_text(content))
    except UnicodeError as error:
        file.refuse(f"not UTF-8: {error.reason if isinstance(error, UnicodeDecodeError) else error}")
    return file.parsed(strict=strict)


def _text(content: bytes | str) -> str:
    """Return the text without a byte order mark. Raises UnicodeError if it is not valid UTF-8."""
    if isinstance(content, bytes):
        return content.decode("utf-8-sig")
    content.encode()
    return content.removeprefix("\ufeff")


class _Capped(Generic[_One]):
    """A list that stores its first items and only counts further ones."""

    def __init__(self) -> None:
        self.kept: list[_One] = []
        self.left_out = 0

    def add(self, one: _One, *, always: bool = False) -> None:
        if always or len(self.kept) < MAX_REPORTED:
            self.kept.append(msgspec.structs.replace(one, path=_printable(one.path)))
        else:
            self.left_out += 1

    def items(self, *, numbered: bool) -> list[_One]:
        """Return the stored items; without document numbers if the file has only one document."""
        return self.kept if numbered else [msgspec.structs.replace(one, document=0) for one in self.kept]


class _File:
    """Everything found in one file so far."""

    def __init__(self, name: str, namespace: str) -> None:
        self._name = name
        self._namespace = namespace
        self._documents = 0
        self._pods: dict[str, Pod] = {}
        self._secrets: dict[str, Secret] = {}
        self._first: dict[str, str] = {}
        self._errors: _Capped[ManifestError] = _Capped()
        self._findings: _Capped[Finding] = _Capped()

    def read(self, text: str) -> None:
        """Read all documents, up to the first one that cannot be parsed."""
        try:
            for document in documents(text):
                if document.value is not None or document.problems:
                    self._documents += 1
                    self._document(document.value, document.problems)
        except NotReadableError as error:
            self._documents += 1
            self.refuse(str(error))
        if not self._documents:
            self.refuse("holds no object, expected a v1 Pod")

    def refuse(self, message: str) -> None:
        """Record why the file, or the rest of it from the current document on, cannot be read. `MAX_REPORTED` does not
        apply.
        """
        self._errors.add(
            ManifestError(file=self._name, path="", message=message, document=self._documents), always=True
        )

    def parsed(self, *, strict: bool) -> Parsed:
        """Return the result for the whole file."""
        numbered = self._documents > 1
        errors, findings = self._errors.items(numbered=numbered), self._findings.items(numbered=numbered)
        if self._errors.left_out:
            errors.append(ManifestError(file=self._name, path="", message=f"{self._errors.left_out} more errors"))
        if self._findings.left_out:
            message = f"{self._findings.left_out} more fields are not honoured"
            findings.append(Finding(path="", severity=WARNING, message=message))
        if strict:
            errors += [
                ManifestError(file=self._name, path=one.path, message=one.message, document=one.document)
                for one in findings
            ]
        return Parsed(
            pods=() if errors else tuple(self._pods.values()),
            secrets=() if errors else tuple(self._secrets.values()),
            errors=tuple(errors),
            findings=tuple(findings),
        )

    def _document(self, value: Any, known: tuple[Problem, ...]) -> None:
        self._refuse_all(known)
        for found in objects(Item("", value)):
            self._take(found, read(found, self._namespace, known))

    def _take(self, found: Item, taken: Converted) -> None:
        self._refuse_all(taken.problems)
        for finding in taken.findings:
            self._findings.add(msgspec.structs.replace(finding, document=self._documents))
        if taken.secret is not None and self._is_first(f"Secret {taken.secret.key}", found):
            self._secrets[taken.secret.key] = taken.secret
        if taken.pod is not None and taken.pod.metadata.name and self._is_first(f"pod {taken.pod.key}", found):
            self._pods[taken.pod.key] = taken.pod

    def _is_first(self, what: str, found: Item) -> bool:
        """Whether this is the first object with its name; a second one is recorded as an error."""
        here = f"document {self._documents}" + (f" at {found.path}" if found.path else "")
        first = self._first.setdefault(what, here)
        if first is here:
            return True
        place = below(found.path, "metadata.name")
        self._refuse_all([Problem(place, f"{what} is defined twice in this file, first in {first}")])
        return False

    def _refuse_all(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self._errors.add(
                ManifestError(file=self._name, path=problem.path, message=problem.message, document=self._documents)
            )


def _printable(path: str) -> str:
    """Return a field's path with unprintable characters escaped, truncated to `_PATH_SHOWN` characters: it may contain
    keys of maps from the manifest, which are untrusted text.
    """
    shown = path if path.isprintable() else repr(path)[1:-1]
    return shown if len(shown) <= _PATH_SHOWN else shown[:_PATH_SHOWN] + "..."
