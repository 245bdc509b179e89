"""`chronolet delete`: wants pods no longer.

Comes in: names or manifests. Goes out: `manifests.DeletePods`, and a line for each pod; by default when nothing of it
is left, which `pod.PodEnded` says in the log.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from chronolet.cli.asking import Answer, Watch, ask, follow, new_request, refusal
from chronolet.cli.completing import types_then_pods
from chronolet.cli.errors import Failure
from chronolet.cli.manifests import read
from chronolet.cli.naming import types_and_names
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.progress import progress
from chronolet.cli.session import Session, session
from chronolet.node.settings import Settings
from chronolet_schemas import codec, manifests, pod, registry
from chronolet_schemas.envelope import Entry, Position

_ENDED = registry.type_of(pod.PodEnded)


@click.command(cls=Command)
@with_settings()
@namespace_option
@click.argument("names", nargs=-1, metavar="(pod NAME... | pod/NAME...)", shell_complete=types_then_pods)
@click.option("-f", "--filename", "files", multiple=True, metavar="FILE", help="pods of this file, folder, or -")
@click.option("--grace-period", type=click.IntRange(min=-1), metavar="SECONDS", help="-1: each pod's own [default]")
@click.option("--force", is_flag=True, help="kill at once: the same as --grace-period 0 --no-wait")
@click.option("--wait/--no-wait", default=True, show_default=True, help="wait until nothing of the pods is left")
def command(
    *,
    settings: Settings,
    namespace: str,
    names: Sequence[str],
    files: Sequence[str],
    grace_period: int | None,
    force: bool,
    wait: bool,
) -> None:
    """Delete pods."""
    keys = _keys(namespace, names, files)
    grace = 0 if force and grace_period is None else grace_period
    with session(settings, patient=True) as node:
        request = new_request()
        wish = manifests.DeletePods(
            request=request, pods=keys, grace_period_seconds=None if grace is None or grace < 0 else grace
        )
        answers = ask(node, wish)
        withdrawn, refused = _sorted(answers)
        if wait and not force and withdrawn:
            _wait(node, withdrawn, answers[-1].entry.position)
    for key in keys:
        if key in withdrawn:
            click.echo(f"pod/{key.partition('/')[2]} deleted")
    if refused:
        raise Failure(*refused)


def _keys(namespace: str, names: Sequence[str], files: Sequence[str]) -> tuple[str, ...]:
    if bool(names) == bool(files):
        raise click.UsageError("expected either pods by name (pod NAME, pod/NAME) or -f FILE.")
    if files:
        return tuple(found.key for _, found in read(files, namespace).pods)
    bare = types_and_names(names, ("pods",))[1]
    if not bare:
        raise click.UsageError("expected the names of pods behind the type.")
    return tuple(f"{namespace}/{name}" for name in bare)


def _sorted(answers: Sequence[Answer]) -> tuple[dict[str, str], list[str]]:
    """The uids of withdrawn pods by key, and what was refused."""
    withdrawn: dict[str, str] = {}
    refused: list[str] = []
    for _, event in answers:
        if isinstance(event, manifests.PodWithdrawn):
            withdrawn[event.pod] = event.uid
        elif isinstance(event, manifests.PodRefused):
            refused.append(refusal(event.pod, event.reason))
    return withdrawn, refused


def _wait(node: Session, withdrawn: dict[str, str], after: Position) -> None:
    left = dict(withdrawn)
    with progress(f"waiting for the end of {', '.join(left)}") as line:
        watch = Watch(node.store, "the deletion goes on when one runs again")
        for entry in follow(node.store, after, watch.look):
            ended = _ended(entry)
            if ended and left.get(ended.pod) == ended.uid:
                del left[ended.pod]
                line.text = f"waiting for the end of {', '.join(left)}"
            if not left:
                return


def _ended(entry: Entry) -> pod.PodEnded | None:
    return codec.decode(entry.type, entry.data, pod.PodEnded) if entry.type == _ENDED else None
