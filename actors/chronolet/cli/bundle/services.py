"""The services of commands that read a bundle: its log in the place of a node's, and refusals of what it does not have.

Input: an open bundle. Output: `Services`. Next: `open`, which runs a command with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, cast

from chronolet.cli.errors import Failure
from chronolet.cli.printing import ages
from chronolet.cli.services import Services, readable_kinds
from chronolet.history.bundle.reader import Bundle
from chronolet.history.bundle.store import BundleArchive, BundleStore
from chronolet.history.state import ReadableKind
from chronolet.kernel.step.snapshots import snapshot_format
from chronolet.kernel.storage.store import Store


def services(bundle: Bundle) -> Services:
    """Return services for which the bundle's end is the present."""
    manifest = bundle.manifest
    archive = BundleArchive(bundle, ages.rfc3339(manifest.begins_at))
    return Services(
        store=lambda _: cast(Store, BundleStore(bundle)),
        archive=lambda *_: archive,
        kinds=lambda names: _kinds(bundle, names),
        now=lambda: manifest.ends_at,
        results=lambda _: bundle.results(),
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
    )


def _refused(bundle: Bundle, what: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise Failure(f"{bundle.name}: a bundle has no {what}; commands that read the log with --at work on it")

    return refuse


def _kinds(bundle: Bundle, names: Sequence[str]) -> Sequence[ReadableKind]:
    """Return these kinds. Raises Failure if the states in the bundle cannot be read by this release."""
    formats = {part.kind: part.format for part in bundle.manifest.of("states")}
    kinds = readable_kinds(names)
    for kind in kinds:
        if formats.get(kind.name, snapshot_format(kind, 1)) != snapshot_format(kind, 1):
            raise Failure(
                f"{bundle.name}: its states of {kind.name} were saved by chronolet {bundle.manifest.created_by} in a "
                "form that this release does not read: use that version, or a bundle that begins with the log"
            )
    return kinds
