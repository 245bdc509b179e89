"""`chronolet replay --set` and `--manifest`: decides the log again with a change, next to what happened.

Input: a session, a range, the changes. Output: text or JSON. Next: `history.whatif.two_runs`, which decides;
`node.whatif`, which knows what can be changed; `printing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from chronolet.cli.apply import manifests
from chronolet.cli.errors import Failure
from chronolet.cli.replay.whatif import printing
from chronolet.cli.session import Session
from chronolet.history.whatif.two_runs import TwoRuns
from chronolet.history.when import Located
from chronolet.kernel.kind import Kind
from chronolet.node.settings.plain import read_settings
from chronolet.node.settings.policies import deciding
from chronolet.node.whatif.change import NodeChange
from chronolet.node.whatif.result import Result
from chronolet.node.whatif.wanted import ChangeError, Wanted, wanted
from chronolet_schemas import kernel
from chronolet_schemas.envelope import START
from chronolet_schemas.podspec import Pod

_USUAL_MACHINE = "x86_64"
"""Of a process that the log does not describe: one of a release that did not record inputs, so it does not matter."""


def ask(
    node: Session,
    first: Located,
    last: Located,
    *,
    changes: Sequence[str],
    files: Sequence[Path],
    namespace: str,
    output: str | None,
) -> None:
    """Print what would have happened after `first`, up to `last`. Raises Failure if that cannot be told."""
    if node.beginning() != START:
        raise Failure(
            "the question what would have happened needs the log from its beginning, and this one is a window of it: "
            "save a bundle without --from"
        )
    try:
        asked = wanted(changes, namespace, _manifests(node, files, namespace))
        found = _found(node, first, last, asked)
    except ChangeError as error:
        raise Failure(f"{_flag(changes, files)}: {error}") from error
    shown = [*changes, *(f"manifest {file}" for file in files)]
    click.echo(printing.as_json(found, shown) if output else printing.as_text(found, shown), nl=False)


def _flag(changes: Sequence[str], files: Sequence[Path]) -> str:
    return "--manifest" if files and not changes else "--set" if changes and not files else "--set or --manifest"


def _manifests(node: Session, files: Sequence[Path], namespace: str) -> Mapping[str, Pod]:
    if not files:
        return {}
    read = manifests.read(
        manifests.Files(tuple(map(str, files))), namespace, node.settings.node, download=node.services.download
    )
    if read.secrets:
        raise ChangeError(f"{read.secrets[0][0]}: found a Secret, expected only Pods")
    return {pod.key: pod for _, pod in read.pods}


def _found(node: Session, first: Located, last: Located, asked: Wanted) -> printing.Found:
    change = NodeChange(asked, node.settings, _USUAL_MACHINE)
    runs = TwoRuns(change, deciding(node.settings, _USUAL_MACHINE), _deciding, first.position)
    result = Result()
    node.at = last
    # It reads the log from its beginning, because what leads to a decision may be as old as the log.
    for entry in node.entries():
        for step in runs.add(entry):
            result.add(step)
    for step in runs.end(last.milliseconds):
        result.add(step)
    if runs.unread and not runs.decisions:
        raise ChangeError(
            "the log does not tell what the decisions between the two moments were made from; expected some that this "
            "release, or one that records them, has made; see `chronolet replay --verify`"
        )
    change.check()
    unknown = (*runs.unknown(), *change.unknown)
    assumed = runs.assumed or bool(change.unknown)
    return printing.Found(result.rows(), result.counts(), runs.first, assumed, runs.decisions, unknown)


def _deciding(process: kernel.ProcessStarted) -> Sequence[Kind[Any]]:
    return deciding(read_settings(process.settings), process.architecture)
