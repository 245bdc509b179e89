"""What each source wants now: folded from manifests' own events.

Comes in: nothing. Goes out: the frozen State. Next: `decider`, and the CLI for `get` and `describe`.
"""

from __future__ import annotations

import immutables
import msgspec

APPLY = "apply"
"""The source of what `apply` brings."""
_FILE = "file:"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that a source wants: who, and which content under which uid. The spec itself lies with the pod."""

    uid: str
    source: str
    digest: str
    pull_secrets: tuple[str, ...] = ()
    """The names of its imagePullSecrets, in its own namespace."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A Secret that a source wants. What it holds lies in the state folder under its digest."""

    type: str
    digest: str
    source: str


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest file: `digest` of its bytes when it was last read, the uids by key of the pods it holds (accepted
    or refused), the digests by key of its Secrets, what was said about it, and the errors if it could not be used.
    """

    digest: str
    pods: dict[str, str] = {}
    findings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    secrets: dict[str, str] = {}


class State(msgspec.Struct, frozen=True, kw_only=True):
    """`pods` and `secrets` by namespace/name, `files` by path. `unreadable` is why the folder cannot be listed.

    `rereads` counts how often the folder had to be read anew because a name that a file was refused became free.
    `secret_changes` counts how often a Secret came, changed or went.
    """

    pods: immutables.Map[str, Wanted] = immutables.Map()
    files: immutables.Map[str, File] = immutables.Map()
    listed: bool = False
    unreadable: str = ""
    rereads: int = 0
    secrets: immutables.Map[str, Kept] = immutables.Map()
    secret_changes: int = 0


def file_source(path: str) -> str:
    """The source's name of a manifest file."""
    return f"{_FILE}{path}"


def file_path(source: str) -> str:
    """The path of the manifest file that a source names, empty for another source."""
    return source[len(_FILE) :] if source.startswith(_FILE) else ""
