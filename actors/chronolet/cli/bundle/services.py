"""The services of commands that read a bundle: its log in the place of a node's, and refusals of what it does not have.

Input: an open bundle. Output: `Services`. Next: `open`, which runs a command with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, cast

import msgspec

from chronolet.cli.errors import Failure
from chronolet.cli.printing import ages
from chronolet.cli.services import Services, readable_kinds
from chronolet.history.bundle.parts import Unreadable
from chronolet.history.bundle.reader import Bundle
from chronolet.history.bundle.store import BundleArchive, BundleStore
from chronolet.history.state import ReadableKind
from chronolet.kernel.step.snapshots import decode_states, snapshot_format
from chronolet.kernel.storage.store import Store
from chronolet_schemas import registry

KINDS = tuple(sorted(registry.KINDS - {"kernel"}))
"""The actor kinds; `kernel` has events, but no entities."""


def services(bundle: Bundle) -> Services:
    """Return services for which the bundle's end is the present."""
    manifest = bundle.manifest
    archive = BundleArchive(bundle, ages.rfc3339(manifest.begins_at))
    checked: set[str] = set()
    return Services(
        store=lambda _: cast(Store, BundleStore(bundle)),
        archive=lambda *_: archive,
        kinds=lambda names: _kinds(bundle, names, checked),
        now=lambda: manifest.ends_at,
        results=lambda _: bundle.results(),
        probe_sources=_refused(bundle, "outcomes of probes but the last ones, which `describe` shows"),
        spans=lambda *_: None,
        sites=_refused(bundle, "site"),
        runtime=_refused(bundle, "Docker Engine"),
        images=_refused(bundle, "Docker Engine"),
        logs=_refused(bundle, "pod logs"),
        secrets=_refused(bundle, "Secrets"),
        kube_events=_refused(bundle, "KubeEvents but those in its log"),
        cgroups=_refused(bundle, "cgroups"),
        download=_refused(bundle, "connection"),
        past=True,
        redacted=manifest.redaction.values > 0,
    )


def _refused(bundle: Bundle, what: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise Failure(f"{bundle.name}: a bundle has no {what}; commands that read the log with --at work on it")

    return refuse


def _kinds(bundle: Bundle, names: Sequence[str], checked: set[str]) -> Sequence[ReadableKind]:
    """Return these kinds, and check the states of each of them once. Raises Failure if they cannot be read."""
    formats = {part.kind: part.format for part in bundle.manifest.of("states")}
    kinds = readable_kinds(names)
    for kind in kinds:
        if formats.get(kind.name, snapshot_format(kind, 1)) != snapshot_format(kind, 1):
            raise Failure(
                f"{bundle.name}: its states of {kind.name} were saved by chronolet {bundle.manifest.created_by} in a "
                "form that this release does not read: use that version, or a bundle that begins with the log"
            )
        if kind.name not in checked:
            check_states(bundle, kind)
            checked.add(kind.name)
    return kinds


def check_states(bundle: Bundle, kind: ReadableKind) -> None:
    """Decode the states of a kind. Raises Unreadable: a snapshot that cannot be decoded would count as missing."""
    for part in bundle.manifest.of("states"):
        if part.kind == kind.name and part.format == snapshot_format(kind, 1):
            try:
                decode_states(kind.state, bundle.states_of(part))
            except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
                raise Unreadable(f"{bundle.name}: the states of {kind.name} are invalid: {error}") from error
