"""Findings about a manifest file: errors that make the file unusable, and fields that are not honoured.

Input: none. Output: `Finding` and `ManifestError`, plain data for events, the CLI and KubeEvents.
"""

from typing import Literal

import msgspec

Severity = Literal["warning", "blocking"]

WARNING: Severity = "warning"
BLOCKING: Severity = "blocking"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A field that is not honoured. `blocking` prevents the container at `path`, or the whole pod, from starting.

    `document` counts from 1; it is 0 in a file with a single document. `pod` is `namespace/name`, empty if the document
    is not a Pod.
    """

    path: str
    severity: Severity
    message: str
    document: int = 0
    pod: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class ManifestError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a file is refused: the place of the error (`file`, `document`, `path`) and what was expected there.

    `document` counts from 1; it is 0 in a file with a single document.
    """

    file: str
    path: str
    message: str
    document: int = 0

    def __str__(self) -> str:
        document = f"document {self.document}" if self.document else ""
        return ": ".join(part for part in (self.file, document, self.path, self.message) if part)
