"""`chronolet bundle save`: writes a window of the node's log to one file, without secrets.

Input: a node's log and archive, the contents of its Secrets, two moments. Output: a bundle, encrypted if requested.
The log is read twice: first to learn what is secret, then to write it without that. Next: `bundle open`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import IO, Any

import click

from chronolet.cli.bundle.encryption import encrypted
from chronolet.cli.bundle.output import created
from chronolet.cli.bundle.services import KINDS
from chronolet.cli.bundle.summary import size
from chronolet.cli.errors import Failure
from chronolet.cli.options import Command, with_settings
from chronolet.cli.printing import ages
from chronolet.cli.printing.progress import progress
from chronolet.cli.session import Session, session
from chronolet.cli.version import installed_version
from chronolet.history.bundle.facts import Facts, fact
from chronolet.history.bundle.format import Manifest, Redaction
from chronolet.history.bundle.parts import encode_results
from chronolet.history.bundle.redaction import inputs, rules, searching
from chronolet.history.bundle.redaction.redactor import Redactor, Values
from chronolet.history.bundle.redaction.rules import Kept
from chronolet.history.bundle.vocabulary import words
from chronolet.history.bundle.writer import BundleWriter
from chronolet.history.when import Located
from chronolet.kernel.step.snapshots import EntityImage, encode_states, snapshot_format
from chronolet.kernel.storage.store import HistoryMissing
from chronolet.node.settings.settings import Settings
from chronolet_schemas import registry
from chronolet_schemas.envelope import START, Entry, Position
from chronolet_schemas.manifests import SecretApplied
from chronolet_schemas.prober import RawResult
from chronolet_schemas.times import time_of

_MAY_HAVE_SECRETS = re.compile(rb"env|args|command|nnotations|eaders|ttributes|httpGet|sysctls|@")
"""Before the window, only what users gave to containers is read: texts in the window may repeat it."""
_SECRET_APPLIED = registry.type_of(SecretApplied).partition("@")[0]


@click.command("save", cls=Command)
@with_settings()
@click.option(
    "--from", "begin", metavar="MOMENT", help="where the window begins, as for --at of `get` [default: the log]"
)
@click.option("--to", "end", metavar="MOMENT", help="where the window ends [default: now]")
@click.option(
    "--keep",
    "kept",
    multiple=True,
    metavar="NAME",
    help="do not redact the values of variables, annotations, headers and flags with this name, such as 'LOG_*'; "
    "`args` and `command`: whole command lines; can be repeated",
)
@click.option(
    "--encrypt-to",
    "recipients",
    multiple=True,
    metavar="RECIPIENT",
    help="encrypt with age (age1..., ssh-...) or gpg (a key's fingerprint or mail address); can be repeated",
)
@click.option("--without-secrets", is_flag=True, help="save also if the contents of the node's Secrets cannot be read")
@click.option("--force", is_flag=True, help="replace the file if it exists")
@click.argument("file", type=click.Path(path_type=Path))
def command(
    *,
    settings: Settings,
    begin: str | None,
    end: str | None,
    kept: tuple[str, ...],
    recipients: tuple[str, ...],
    without_secrets: bool,
    force: bool,
    file: Path,
) -> None:
    """Save a window of the node's log in FILE, with the states at its beginning, and without secrets.

    Values of environment variables, arguments, annotations, headers and whatever looks like a secret are replaced:
    docs/bundles.md lists the rules.
    """
    with session(settings) as node:
        window = _Window(node, begin, end)
        contents = _contents(node)
        if not contents and not without_secrets and window.looks_for_secrets():
            raise Failure(
                "the contents of the node's Secrets cannot be read here, so they cannot be searched for: save it "
                "on the node, as the user that the agent runs as, or accept that with --without-secrets"
            )
        with (
            created(file, force=force) as raw,
            encrypted(raw, recipients) if recipients else nullcontext(raw) as stream,
        ):
            manifest = _save(node, window, contents, Kept(kept), stream)
    click.echo(
        f"{file}: {manifest.count} entries of node {manifest.node} from {ages.rfc3339(manifest.begins_at)} to "
        f"{ages.rfc3339(manifest.ends_at)}, {size(file.stat().st_size)}; secret values known and replaced: "
        f"{manifest.redaction.values}"
    )


class _Window:
    """The moments between which entries are saved, and the entry before the first of them, if any."""

    def __init__(self, node: Session, begin: str | None, end: str | None) -> None:
        self.begin = node.go_to(begin, "--from") if begin is not None else None
        self.states = node.state(*KINDS).states if self.begin is not None else {}
        self.after = self.begin.position if self.begin is not None else START
        self.end: Located = node.go_to_now() if end is None else node.go_to(end, "--to")
        if self.end.position <= self.after:
            raise Failure(f"--from: found {begin}, expected a moment with entries between it and --to")
        self._node = node
        before = Position(self.after.milliseconds, self.after.n - 1)
        self._base = None if self.begin is None else next(self._found(before, self.after), None)
        first = self._base or next(iter(self.entries()))
        self.begins_at = self.begin.milliseconds if self.begin is not None else time_of(first)

        self.results = tuple(encode_results(self._results()))
        """The raw probe results in the window, as far as the node still has them: the content of each part."""

    def _results(self) -> Iterator[RawResult]:
        for one in self._node.services.results(self._node.settings):
            if self.begins_at <= int(one.at) <= self.end.milliseconds:
                yield one

    def entries(self) -> Iterator[Entry]:
        """Yield the entry before the window, then those in it."""
        if self._base is not None:
            yield self._base
        yield from self._node.entries(self.after)

    def looks_for_secrets(self) -> bool:
        """Return whether the node has, or had in the window, Secrets whose contents are outside the log."""
        known = any(getattr(one, "secrets", None) for one in self.states.get("manifests", {}).values())
        return known or any(entry.type.startswith(_SECRET_APPLIED) for entry in self.entries())

    def earlier(self) -> Iterator[Entry]:
        """Yield the entries before the window, as far as they are available."""
        if self.begin is not None:
            with suppress(HistoryMissing):
                yield from self._found(START, self.after)

    def _found(self, after: Position, upto: Position) -> Iterator[Entry]:
        return (entry for entry in self._node.entries(after) if entry.position <= upto)


def _save(node: Session, window: _Window, contents: Sequence[bytes], kept: Kept, stream: IO[bytes]) -> Manifest:
    """Write the bundle. `contents`: those of the node's Secrets."""
    values, facts = _learnt(window, contents, kept)
    redactor = Redactor(values, kept, searching.search(values, words()))
    writer = BundleWriter(stream)
    kinds = {kind.name: kind for kind in node.services.kinds(tuple(window.states))}
    with progress("writing the bundle"):
        for name, states in window.states.items():
            plain = _images(states)
            writer.states(name, snapshot_format(kinds[name], 1), redactor.states(plain))
        for results in window.results:
            writer.results(redactor.results(results))
        writer.entries(inputs.redacted(window.entries(), redactor))
        chosen = [fact(redactor.entry(one)._replace(data=redactor.data(one.data))) for one in facts.entries()]
        name = redactor.name(node.settings.node)
    return writer.finish(
        Manifest(
            node=name,
            run=node.store.run(),
            created_at=node.services.now(),
            created_by=installed_version(),
            begins=str(window.after),
            begins_at=window.begins_at,
            ends="",
            ends_at=window.end.milliseconds,
            count=0,
            redaction=Redaction(rules=rules.VERSION, kept=kept.patterns, values=len(values)),
            facts=tuple(one for one in chosen if one is not None),
        )
    )


def _learnt(window: _Window, contents: Sequence[bytes], kept: Kept) -> tuple[Values, Facts]:
    """Return the secrets and names in the window, and what describes the node."""
    values, facts = Values(), Facts()
    learning = Redactor(values, kept)
    with progress("looking for secrets"):
        for secret in contents:
            searching.add_secret(values, secret)
        for results in window.results:
            learning.results(results)
        for entry in window.earlier():
            facts.look(entry)
            if _MAY_HAVE_SECRETS.search(entry.data):
                learning.data(entry.data)
        for states in window.states.values():
            learning.states(_images(states))
        for _ in inputs.redacted(_noted(window.entries(), values, facts), learning):
            pass
        for entry in facts.entries():
            learning.data(entry.data)
    return values, facts


def _noted(entries: Iterable[Entry], values: Values, facts: Facts) -> Iterator[Entry]:
    """Yield the entries, and note their names and facts."""
    for entry in entries:
        values.add_names(entry)
        facts.look(entry)
        yield entry


def _contents(node: Session) -> Sequence[bytes]:
    """Return the contents of the node's Secrets, as far as they can be read here."""
    try:
        found = node.services.secrets(node.settings).all()
    except OSError:
        return ()
    return [content for one in found for content in one.secret.data.values()]


def _images(states: Any) -> bytes:
    return encode_states({key: EntityImage(state=state) for key, state in states.items()})
