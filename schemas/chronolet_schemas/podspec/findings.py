"""What a reader of manifests says about a file: errors that refuse it and findings that do not.

Comes in: nothing. Goes out: `Finding` and `ManifestError`, plain data that events, the CLI and KubeEvents carry on.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["warning", "blocking"]

WARNING: Severity = "warning"
BLOCKING: Severity = "blocking"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A field that is not honoured. `blocking` keeps the container at `path`, or the whole pod, from starting.

    `document` counts from 1 and is 0 where a file has one document only; `pod` is `namespace/name`, empty where the
    finding is about a document that is not a Pod.
    """

    path: str
    severity: Severity
    message: str
    document: int = 0
    pod: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class ManifestError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a file is refused: where (file, document from 1 or 0 if there is one only, path) and what was expected."""

    file: str
    path: str
    message: str
    document: int = 0

    def __str__(self) -> str:
        document = f"document {self.document}" if self.document else ""
        return ": ".join(part for part in (self.file, document, self.path, self.message) if part)
