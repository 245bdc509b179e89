"""`chronolet wait --for=...`: waits until pods meet a condition.

Input: names and a condition. Output: a line for each pod when it meets the condition; a Failure that names the pods
that do not exist or did not meet it in time. Next: `pod_changes`, which follows the log. Source: kubectl's
pkg/cmd/wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from chronolet.cli.completion.candidates import types_then_pods
from chronolet.cli.errors import Failure, not_found
from chronolet.cli.get import selecting
from chronolet.cli.naming import TYPES, types_and_names
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.printing.progress import progress
from chronolet.cli.session import session
from chronolet.cli.watch.conditions import CREATE, DELETE, AwaitedError, Test, awaited
from chronolet.cli.watch.pod_changes import Object, Pods
from chronolet.node.settings.settings import Settings
from chronolet.node.settings.values import duration

_HELP = """\b
Values of --for:
  condition=NAME[=VALUE]     such as condition=Ready; VALUE defaults to True
  jsonpath=TEMPLATE[=VALUE]  such as jsonpath='{.status.phase}'=Running
  create                     the pods exist
  delete                     the pods are gone
--timeout 0 checks once and does not wait; a negative value waits for a week.
Exit status: 0 condition met, 1 timed out or pod not found."""
_WEEK_SECONDS = 7 * 24 * 3600.0


@click.command(cls=Command, epilog=_HELP)
@with_settings()
@namespace_option
@click.argument("names", nargs=-1, metavar="(POD... | pod/POD...)", shell_complete=types_then_pods)
@selecting.options
@click.option("--all", "everything", is_flag=True, help="all pods in the namespace")
@click.option(
    "--for",
    "what",
    required=True,
    metavar="CONDITION",
    help="condition=NAME[=VALUE], jsonpath=TEMPLATE[=VALUE], create or delete",
)
@click.option("--timeout", default="30s", show_default=True, metavar="DURATION", help="time to wait before giving up")
def command(
    *,
    settings: Settings,
    namespace: str,
    names: Sequence[str],
    selector: selecting.Predicate | None,
    field_selector: selecting.Predicate | None,
    everything: bool,
    what: str,
    timeout: str,
) -> None:
    """Wait for a condition on pods, such as ready or deleted."""
    goal, seconds = _goal(what), _seconds(timeout)
    selected = everything or selector is not None or field_selector is not None
    named = _named(names, selected=selected)
    with session(settings) as node:
        pods = Pods(node)
        pending = _Pending(goal, pods.now)
        if selected:
            pending.add(_selected(pods, namespace, selecting.chosen(selector, field_selector)))
        pending.add([f"{namespace}/{name}" for name in named])
        with progress(f"waiting for {', '.join(pending.pods)}"):
            _follow(pods, pending, seconds)
    late = [f"timed out waiting for the condition on pods/{key.partition('/')[2]}" for key in pending.pods]
    absent = [not_found("pods", key.partition("/")[2]) for key in pending.absent if goal.present]
    if late or absent:
        raise Failure(*absent, *late)


def _selected(pods: Pods, namespace: str, matches: selecting.Predicate) -> list[str]:
    found = [key for key, pod in pods.now.items() if pod["metadata"]["namespace"] == namespace and matches(pod)]
    if not found:
        raise Failure("no matching resources found")
    return found


class _Goal(NamedTuple):
    """The condition to wait for. `present`: only an existing pod can meet it, so a missing pod is an error."""

    test: Test | None
    present: bool

    def met(self, before: Object | None, pod: Object | None) -> bool:
        """Return whether the pod meets the goal. A goal without a test is met once the pod in `before` is gone."""
        if self.test is not None:
            return pod is not None and self.test(pod)
        return pod is None or before is None or pod["metadata"]["uid"] != before["metadata"]["uid"]


class _Pending:
    """The requested pods. `pods`: those that do not meet the goal yet, each as it was at the start, None if it did not
    exist. `absent`: those that do not exist and cannot meet the goal any more.
    """

    def __init__(self, goal: _Goal, now: Mapping[str, Object]) -> None:
        self.goal = goal
        self.now = now
        self.pods: dict[str, Object | None] = {}
        self.absent: list[str] = []

    def add(self, keys: Sequence[str]) -> None:
        """Add pods to wait for. A pod that does not exist is recorded as absent unless the goal is its creation."""
        for key in keys:
            if key in self.now or self.goal.test is _created:
                self.pods[key] = self.now.get(key)
            else:
                self.absent.append(key)

    def check(self, key: str, pod: Object | None) -> None:
        """Check a pod. Print a line if it meets the goal; record it as absent if it is gone and the goal requires it to
        exist.
        """
        if key not in self.pods:
            return
        if self.goal.met(self.pods[key], pod):
            del self.pods[key]
            click.echo(f"pod/{key.partition('/')[2]} condition met")
        elif pod is None and self.goal.present:
            del self.pods[key]
            self.absent.append(key)


def _created(_: Object) -> bool:
    return True


def _follow(pods: Pods, pending: _Pending, seconds: float) -> None:
    for key in tuple(pending.pods):
        pending.check(key, pods.now.get(key))
    if not pending.pods:
        return
    for change in pods.changes(seconds):
        pending.check(change.key, change.after)
        if not pending.pods:
            return


def _named(words: Sequence[str], *, selected: bool) -> tuple[str, ...]:
    """Return the given pod names; empty if pods are selected, because then only a type may be given."""
    if selected:
        if words and (len(words) > 1 or TYPES.get(words[0]) != "pods"):
            raise click.UsageError("specify either names, or a selector or --all.")
        return ()
    if not words:
        raise click.UsageError("specify pod names, a selector or --all.")
    return _names(words)


def _names(words: Sequence[str]) -> tuple[str, ...]:
    """Return the names in `web db`, `pod web db` or `pod/web pod/db`."""
    if "/" not in words[0] and words[0] not in TYPES:
        words = ("pods", *words)
    names = types_and_names(words, ("pods",))[1]
    if not names:
        raise click.UsageError("expected pod names after the type.")
    return names


def _goal(what: str) -> _Goal:
    if what.lower() == DELETE:
        return _Goal(None, present=False)
    if what.lower() == CREATE:
        return _Goal(_created, present=False)
    try:
        return _Goal(awaited(what), present=True)
    except AwaitedError as error:
        raise click.UsageError(f"--for: {error}.") from error


def _seconds(timeout: str) -> float:
    text = timeout.strip()
    if text in ("0", "0s"):
        return 0.0
    return _WEEK_SECONDS if text.startswith("-") else duration("--timeout", timeout) / 1_000
