"""State of the `manifests` kind: what each source defines. Folded from the kind's own events.

Input: none. Output: the frozen State. Next: `decider`, and the CLI for `get` and `describe`.
"""

from __future__ import annotations

import immutables
import msgspec

APPLY = "apply"
"""The source of everything that `apply` defines."""
_FILE = "file:"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A requested pod: its uid, its source and the digest of its content. The pod actor stores the spec."""

    uid: str
    source: str
    digest: str
    pull_secrets: tuple[str, ...] = ()
    """Names of the pod's imagePullSecrets, in its namespace."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A Secret that a source defines. Its data is stored in the state folder under its digest."""

    type: str
    digest: str
    source: str


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest file as last read.

    `digest` is the digest of the file's bytes. `pods` maps the key of each pod, accepted or refused, to its uid, and
    `secrets` the key of each Secret to its digest. `findings`: the fields that are not honoured. `errors`: why the file
    is unusable; empty if it is usable.
    """

    digest: str
    pods: dict[str, str] = {}
    findings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    secrets: dict[str, str] = {}


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What the sources define. `pods` and `secrets` are keyed by namespace/name, `files` by path. `unreadable` is why
    the folder cannot be listed.

    `rereads` counts how often the folder was read again because another source released a name that had caused a file's
    pod or Secret to be refused. `secret_changes` counts every added, changed or removed Secret.
    """

    pods: immutables.Map[str, Wanted] = immutables.Map()
    files: immutables.Map[str, File] = immutables.Map()
    listed: bool = False
    unreadable: str = ""
    rereads: int = 0
    secrets: immutables.Map[str, Kept] = immutables.Map()
    secret_changes: int = 0


def file_source(path: str) -> str:
    """Return the source name of a manifest file."""
    return f"{_FILE}{path}"


def file_path(source: str) -> str:
    """Return the path of the manifest file that a source names; empty for any other source."""
    return source[len(_FILE) :] if source.startswith(_FILE) else ""
