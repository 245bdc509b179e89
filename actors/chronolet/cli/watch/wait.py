"""`chronolet wait --for=...`: until pods are as they should be.

Comes in: names, and what they are to become. Goes out: a line for each pod once it is so; a Failure that names those
which were not in time. Next: `watching`, which follows the log. Source: kubectl's pkg/cmd/wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from chronolet.cli.completion.completing import types_then_pods
from chronolet.cli.errors import Failure, not_found
from chronolet.cli.get import selecting
from chronolet.cli.naming import TYPES, types_and_names
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.printing.progress import progress
from chronolet.cli.session import session
from chronolet.cli.watch.awaited import CREATE, DELETE, AwaitedError, Test, awaited
from chronolet.cli.watch.watching import Object, Pods
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import duration

_HELP = """\b
What --for takes:
  condition=NAME[=VALUE]     such as condition=Ready; VALUE is True if it is left out
  jsonpath=TEMPLATE[=VALUE]  such as jsonpath='{.status.phase}'=Running
  create                     until the pods are there
  delete                     until nothing of the pods is left
--timeout 0 looks once; a negative one waits for a week.
Exit status: 0 met, 1 not in time or no such pod."""
_WEEK_SECONDS = 7 * 24 * 3600.0


@click.command(cls=Command, epilog=_HELP)
@with_settings()
@namespace_option
@click.argument("names", nargs=-1, metavar="(POD... | pod/POD...)", shell_complete=types_then_pods)
@selecting.options
@click.option("--all", "everything", is_flag=True, help="all pods of the namespace")
@click.option("--for", "what", required=True, metavar="WHAT", help="condition=NAME, jsonpath=TEMPLATE=VALUE or delete")
@click.option("--timeout", default="30s", show_default=True, metavar="DURATION", help="how long at most")
def command(
    *,
    settings: Settings,
    namespace: str,
    names: Sequence[str],
    selector: selecting.Wanted | None,
    field_selector: selecting.Wanted | None,
    everything: bool,
    what: str,
    timeout: str,
) -> None:
    """Wait until pods are ready, deleted, or anything else."""
    awaits, seconds = _awaited(what), _seconds(timeout)
    selected = everything or selector is not None or field_selector is not None
    named = _named(names, selected=selected)
    with session(settings) as node:
        pods = Pods(node)
        left = _Left(awaits, pods.now)
        if selected:
            left.take(_selected(pods, namespace, selecting.chosen(selector, field_selector)))
        left.take([f"{namespace}/{name}" for name in named])
        with progress(f"waiting for {', '.join(left.pods)}"):
            _follow(pods, left, seconds)
    late = [f"timed out waiting for the condition on pods/{key.partition('/')[2]}" for key in left.pods]
    absent = [not_found("pods", key.partition("/")[2]) for key in left.absent if awaits.present]
    if late or absent:
        raise Failure(*absent, *late)


def _selected(pods: Pods, namespace: str, wanted: selecting.Wanted) -> list[str]:
    found = [key for key, pod in pods.now.items() if pod["metadata"]["namespace"] == namespace and wanted(pod)]
    if not found:
        raise Failure("no matching resources found")
    return found


class _Awaited(NamedTuple):
    """What is waited for. `present`: of a pod that is there, and no longer to be had if that is gone."""

    test: Test | None
    present: bool

    def met(self, before: Object | None, pod: Object | None) -> bool:
        """Whether it has come. Without a test: the end of the pod that was there before."""
        if self.test is not None:
            return pod is not None and self.test(pod)
        return pod is None or before is None or pod["metadata"]["uid"] != before["metadata"]["uid"]


class _Left:
    """Pods that are not yet as they should be, as they were at the beginning."""

    def __init__(self, awaits: _Awaited, now: Mapping[str, Object]) -> None:
        self.awaits = awaits
        self.now = now
        self.pods: dict[str, Object | None] = {}
        self.absent: list[str] = []

    def take(self, keys: Sequence[str]) -> None:
        """Wait for these, too; those that are not there cannot become anything, unless it is their beginning."""
        for key in keys:
            if key in self.now or self.awaits.test is _created:
                self.pods[key] = self.now.get(key)
            else:
                self.absent.append(key)

    def look(self, key: str, pod: Object | None) -> None:
        """Tell of the pod if it is so now."""
        if key not in self.pods:
            return
        if self.awaits.met(self.pods[key], pod):
            del self.pods[key]
            click.echo(f"pod/{key.partition('/')[2]} condition met")
        elif pod is None and self.awaits.present:
            del self.pods[key]
            self.absent.append(key)


def _created(_: Object) -> bool:
    return True


def _follow(pods: Pods, left: _Left, seconds: float) -> None:
    for key in tuple(left.pods):
        left.look(key, pods.now.get(key))
    if not left.pods:
        return
    for change in pods.changes(seconds):
        left.look(change.key, change.after)
        if not left.pods:
            return


def _named(words: Sequence[str], *, selected: bool) -> tuple[str, ...]:
    """The names, if it is names that say which pods are meant; a type may stand before a selector."""
    if selected:
        if words and (len(words) > 1 or TYPES.get(words[0]) != "pods"):
            raise click.UsageError("expected either names, or a selector or --all.")
        return ()
    if not words:
        raise click.UsageError("expected the names of pods, a selector or --all.")
    return _names(words)


def _names(words: Sequence[str]) -> tuple[str, ...]:
    """`web db`, `pod web db` and `pod/web pod/db` alike."""
    if "/" not in words[0] and words[0] not in TYPES:
        words = ("pods", *words)
    names = types_and_names(words, ("pods",))[1]
    if not names:
        raise click.UsageError("expected the names of pods behind the type.")
    return names


def _awaited(what: str) -> _Awaited:
    if what.lower() == DELETE:
        return _Awaited(None, present=False)
    if what.lower() == CREATE:
        return _Awaited(_created, present=False)
    try:
        return _Awaited(awaited(what), present=True)
    except AwaitedError as error:
        raise click.UsageError(f"--for: {error}.") from error


def _seconds(timeout: str) -> float:
    text = timeout.strip()
    if text in ("0", "0s"):
        return 0.0
    return _WEEK_SECONDS if text.startswith("-") else duration("--timeout", timeout) / 1_000
