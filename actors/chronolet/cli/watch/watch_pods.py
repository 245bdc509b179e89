"""`get pods --watch`: prints the current pods, then a line (or object) per change, until interrupted.

Input: a pod filter and an output format. Output: text. A deleted pod is printed once more in its last state. Next:
`pod_changes`, which follows the log.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import click

from chronolet.cli.get import pod_rows
from chronolet.cli.printing.forms import show_object
from chronolet.cli.printing.table import Growing
from chronolet.cli.session import Session
from chronolet.cli.watch.pod_changes import Pods

Object = dict[str, Any]
Show = Callable[[Sequence[Object]], None]


def follow(now: Pods, matches: Callable[[Object], bool], show: Show) -> None:
    """Print the pods of the session's moment, then each change since then, endlessly."""
    show([pod for pod in now.now.values() if matches(pod)])
    for change in itertools.chain(now.past_changes(), now.changes()):
        pod = change.after or change.before
        if pod is not None and matches(pod):
            show([pod])


def printer(node: Session, output: str | None, *, namespaced: bool, headers: bool, labels: bool) -> Show:
    """Return a function that prints pods in this output format."""
    if output in (None, "wide"):
        return _rows(node, namespaced=namespaced, wide=output == "wide", headers=headers, labels=labels)
    if output == "name":
        return _names
    return _objects(output or "")


def _rows(node: Session, *, namespaced: bool, wide: bool, headers: bool, labels: bool) -> Show:
    table = Growing(pod_rows.head(namespaced=namespaced, wide=wide, labelled=labels) if headers else ())

    def show(found: Sequence[Object]) -> None:
        now = node.now()
        for line in table.lines(
            [pod_rows.row(pod, now, namespaced=namespaced, wide=wide, labelled=labels) for pod in found]
        ):
            click.echo(line)

    return show


def _names(found: Sequence[Object]) -> None:
    for pod in found:
        click.echo(f"pod/{pod['metadata']['name']}")


def _objects(output: str) -> Show:
    """Return a function that prints each object separately, with separators between YAML documents."""
    shown = 0

    def show(found: Sequence[Object]) -> None:
        nonlocal shown
        for pod in found:
            if shown and output == "yaml":
                click.echo("---")
            show_object(pod, output)
            shown += 1

    return show
