"""`chronolet bundle anonymise`: writes a copy of a bundle in which names are replaced consistently.

Input: a bundle. Output: a bundle that folds to the same states under other names. Next: `bundle open`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from chronolet.cli.bundle.open import identity_option, reading
from chronolet.cli.bundle.output import created
from chronolet.cli.bundle.services import KINDS, services
from chronolet.cli.options import Command
from chronolet.cli.printing.progress import progress
from chronolet.history.bundle.anonymising.anonymiser import Anonymiser
from chronolet.history.bundle.anonymising.names import all_names, decoded, find_in
from chronolet.history.bundle.anonymising.settings import find_in_settings
from chronolet.history.bundle.format import Fact, Manifest
from chronolet.history.bundle.parts import encode_results
from chronolet.history.bundle.reader import Bundle
from chronolet.history.bundle.vocabulary import words
from chronolet.history.bundle.writer import BundleWriter
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import Entry, Event

_KEY_BYTES = 32
_PROCESS_STARTED = registry.type_of(kernel.ProcessStarted).partition("@")[0] + "@"


@click.command("anonymise", cls=Command)
@identity_option
@click.option("--force", is_flag=True, help="replace OUT if it exists")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
def command(*, identities: tuple[Path, ...], force: bool, file: Path, out: Path) -> None:
    """Write the bundle FILE to OUT with other names for pods, namespaces, nodes, images, hosts, labels and more.

    The same name becomes the same new name everywhere, so states and relations stay as they are. docs/bundles.md lists
    what is replaced and what is not.
    """
    with reading(file, identities) as bundle, progress("replacing names"):
        vocabulary = words(kind.state for kind in services(bundle).kinds(KINDS))
        states = [_plain(content) for _, content in bundle.states()]
        names = all_names(vocabulary, bundle.entries(), states)
        names.add("node", bundle.manifest.node)
        for settings in _settings(bundle):
            find_in_settings(names, settings)
        for one in bundle.manifest.facts:
            find_in(names, one.data)
        with created(out, force=force) as stream:
            manifest = _write(bundle, Anonymiser(names, vocabulary, os.urandom(_KEY_BYTES)), stream)
    click.echo(f"{out}: {manifest.count} entries of {manifest.node}, {len(names.aliases())} names replaced")


def _settings(bundle: Bundle) -> Iterator[dict[str, Any]]:
    """Yield the settings of each process, also of those that began before the window."""
    found = [decoded(one.data) for one in bundle.entries() if one.type.startswith(_PROCESS_STARTED)]
    found += [one.data for one in bundle.manifest.facts if one.type.startswith(_PROCESS_STARTED)]
    yield from (data["settings"] for data in found if isinstance(data.get("settings"), dict))


def _write(bundle: Bundle, anonymiser: Anonymiser, stream: IO[bytes]) -> Manifest:
    writer = BundleWriter(stream)
    for part, content in bundle.states():
        writer.states(part.kind, part.format, msgspec.msgpack.encode(anonymiser.plain(_plain(content))))
    for results in encode_results(bundle.results()):
        writer.results(msgspec.msgpack.encode(anonymiser.plain(msgspec.msgpack.decode(results))))
    writer.entries(_entries(bundle, anonymiser))
    manifest = bundle.manifest
    return writer.finish(
        msgspec.structs.replace(
            manifest,
            node=anonymiser.text(manifest.node),
            run=anonymiser.text(manifest.run),
            anonymised=True,
            facts=tuple(_fact(one, anonymiser) for one in manifest.facts),
        )
    )


def _entries(bundle: Bundle, anonymiser: Anonymiser) -> Iterator[Entry]:
    for entry in bundle.entries():
        yield anonymiser.entry(entry, readable=_is_readable(entry))


def _is_readable(entry: Entry) -> bool:
    try:
        codec.decode(entry.type, entry.data, Event)
    except codec.Undecodable:
        return False
    return True


def _fact(one: Fact, anonymiser: Anonymiser) -> Fact:
    kind, slash, key = one.entity.partition("/")
    return msgspec.structs.replace(one, entity=f"{kind}{slash}{anonymiser.text(key)}", data=anonymiser.plain(one.data))


def _plain(content: bytes) -> dict[str, Any]:
    return msgspec.msgpack.decode(content, type=dict[str, Any])
