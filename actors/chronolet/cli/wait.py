"""`chronolet wait --for=...`: until pods are as they should be.

Comes in: names, and what they are to become. Goes out: a line for each pod once it is so; a Failure that names those
which were not in time. Next: `watching`, which follows the log. Source: kubectl's pkg/cmd/wait.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from chronolet.cli.awaited import DELETE, AwaitedError, Test, awaited
from chronolet.cli.completing import types_then_pods
from chronolet.cli.errors import Failure
from chronolet.cli.naming import TYPES, types_and_names
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.progress import progress
from chronolet.cli.session import session
from chronolet.cli.watching import Object, Pods
from chronolet.node.settings import Settings
from chronolet.node.values import duration

_HELP = """\b
What --for takes:
  condition=NAME[=VALUE]     such as condition=Ready; VALUE is True if it is left out
  jsonpath=TEMPLATE[=VALUE]  such as jsonpath='{.status.phase}'=Running
  delete                     until nothing of the pods is left
--timeout 0 looks once. Exit status: 0 met, 1 not in time or no such pod."""


@click.command(cls=Command, epilog=_HELP)
@with_settings()
@namespace_option
@click.argument("names", nargs=-1, required=True, metavar="(POD... | pod/POD...)", shell_complete=types_then_pods)
@click.option("--for", "what", required=True, metavar="WHAT", help="condition=NAME, jsonpath=TEMPLATE=VALUE or delete")
@click.option("--timeout", default="30s", show_default=True, metavar="DURATION", help="how long at most")
def command(*, settings: Settings, namespace: str, names: Sequence[str], what: str, timeout: str) -> None:
    """Wait until pods are ready, deleted, or anything else."""
    test, seconds = _test(what), _seconds(timeout)
    with session(settings) as node:
        pods = Pods(node)
        wanted = {f"{namespace}/{name}": pods.now.get(f"{namespace}/{name}") for name in _names(names)}
        missing = [key.partition("/")[2] for key, pod in wanted.items() if pod is None]
        left = _Left(test, {key: pod for key, pod in wanted.items() if pod is not None})
        with progress(f"waiting for {', '.join(wanted)}"):
            _follow(pods, left, seconds)
    late = [f"timed out waiting for the condition on pods/{key.partition('/')[2]}" for key in left.pods]
    # A pod that is not there has been deleted already.
    absent = [f'pod "{name}" not found in namespace "{namespace}"' for name in missing] if test else []
    if late or absent:
        raise Failure(*absent, *late)


class _Left:
    """Pods that are not yet as they should be, as they were at the beginning."""

    def __init__(self, test: Test | None, pods: dict[str, Object]) -> None:
        self.test = test
        self.pods = pods

    def look(self, key: str, pod: Object | None) -> None:
        """Tell of the pod if it is so now; one of another uid is not the one whose end is waited for."""
        if key not in self.pods:
            return
        if self.test is None:
            met = pod is None or pod["metadata"]["uid"] != self.pods[key]["metadata"]["uid"]
        else:
            met = pod is not None and self.test(pod)
        if met:
            del self.pods[key]
            click.echo(f"pod/{key.partition('/')[2]} condition met")


def _follow(pods: Pods, left: _Left, seconds: float) -> None:
    for key in tuple(left.pods):
        left.look(key, pods.now.get(key))
    if not left.pods:
        return
    for change in pods.changes(seconds):
        left.look(change.key, change.after)
        if not left.pods:
            return


def _names(words: Sequence[str]) -> tuple[str, ...]:
    """`web db`, `pod web db` and `pod/web pod/db` alike."""
    if "/" not in words[0] and words[0] not in TYPES:
        words = ("pods", *words)
    names = types_and_names(words, ("pods",))[1]
    if not names:
        raise click.UsageError("expected the names of pods behind the type.")
    return names


def _test(what: str) -> Test | None:
    """None: the end is waited for."""
    if what.lower() == DELETE:
        return None
    try:
        return awaited(what)
    except AwaitedError as error:
        raise click.UsageError(f"--for: {error}.") from error


def _seconds(timeout: str) -> float:
    return 0.0 if timeout.strip() in ("0", "0s") else duration("--timeout", timeout) / 1_000
