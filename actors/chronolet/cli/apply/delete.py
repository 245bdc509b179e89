"""`chronolet delete`: wants pods and Secrets no longer.

Comes in: names, labels or manifests. Goes out: `manifests.DeletePods`, and a line for each; of a pod by default when
nothing of it is left, which `pod.PodEnded` says in the log. A pod that is ending may be asked to end sooner. Source:
kubectl's pkg/cmd/delete.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import click

from chronolet.cli.apply import manifests as manifest_files
from chronolet.cli.apply import secrets
from chronolet.cli.asking import NOT_FOUND, Answer, Queued, Watch, ask, ask_or_queue, follow, new_request, refusal
from chronolet.cli.completion.completing import types_then_pods
from chronolet.cli.errors import Failure
from chronolet.cli.get import selecting
from chronolet.cli.get.podview import api_pods
from chronolet.cli.naming import TYPES, types_and_names
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.printing.progress import progress
from chronolet.cli.session import Session, session
from chronolet.history.state import Moment
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import duration
from chronolet_schemas import codec, manifests, pod, registry
from chronolet_schemas.envelope import Entry, Event, Position

_TELLING = {registry.type_of(kind) for kind in (pod.PodEnded, pod.SuccessorAwaits)}


_WAIT = "wait until nothing of the pods is left; --wait=false: wait neither for that nor for a node agent that runs"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which pods are meant, or Secrets."""

    namespace: str
    names: Sequence[str]
    type: str = "pods"
    """Of the names: `pods` or `secrets`."""
    files: manifest_files.Files
    selector: selecting.Wanted | None
    field_selector: selecting.Wanted | None
    everything: bool
    """All of the namespace."""
    all_namespaces: bool

    @property
    def selected(self) -> bool:
        """They are not named, but found."""
        return self.everything or self.selector is not None or self.field_selector is not None


@click.command(cls=Command)
@with_settings()
@namespace_option
@click.argument(
    "names", nargs=-1, metavar="(pod NAME... | pod/NAME... | secret NAME...)", shell_complete=types_then_pods
)
@manifest_files.options
@selecting.options
@click.option("--all", "everything", is_flag=True, help="all pods of the namespace")
@click.option("-A", "--all-namespaces", is_flag=True, help="of all namespaces, with --all or a selector")
@click.option("--grace-period", type=click.IntRange(min=-1), metavar="SECONDS", help="-1: each pod's own [default]")
@click.option("--now", is_flag=True, help="the same as --grace-period 1")
@click.option("--force", is_flag=True, help="kill at once: the same as --grace-period 0 --no-wait")
@click.option("--wait/--no-wait", default=True, show_default=True, help=_WAIT)
@click.option("--timeout", metavar="DURATION", help="wait no longer than this; 0 for as long as it takes [default]")
@click.option("--ignore-not-found", is_flag=True, help="a pod that is not there is no failure")
@click.option("-o", "--output", type=click.Choice(["name"]), help="print only pod/NAME")
def command(
    *,
    settings: Settings,
    grace_period: int | None,
    now: bool,
    force: bool,
    wait: bool,
    timeout: str | None,
    ignore_not_found: bool,
    output: str | None,
    **which: object,
) -> None:
    """Delete pods and Secrets, or have pods that end already end sooner."""
    asked = _asked(**which)
    grace, seconds = _grace(grace_period, now=now, force=force), _seconds(timeout)
    with session(settings, patient=True) as node:
        moment = node.state("pod")
        keys, of_secrets = _keys(node, asked, moment)
        if not keys and not of_secrets:
            click.echo("No resources found.", err=True)
            return
        wish = _wish(keys, of_secrets, grace, moment)
        answers = ask(node, wish) if wait else ask_or_queue(node, wish)
        if isinstance(answers, Queued):
            _show_queued(wish, moment, output)
            return
        withdrawn, refused = _sorted(answers, ignore_not_found=ignore_not_found)
        done, more = secrets.outcome(answers)
        secrets.show(done, output)
        refused += [said for said in more if not (ignore_not_found and said.endswith(NOT_FOUND))]
        late = _wait(node, withdrawn, moment.position, seconds) if wait and not force and withdrawn else {}
    for key in keys:
        if key in withdrawn and key not in late:
            click.echo(f"pod/{key.partition('/')[2]}" + ("" if output == "name" else " deleted"))
    refused += [f"timed out waiting for the end of pod/{key.partition('/')[2]}" for key in late]
    if refused:
        raise Failure(*refused)


def _asked(**which: object) -> Asked:
    asked = Asked(**which)  # type: ignore[arg-type]
    words = bool(asked.names) and not (asked.selected and len(asked.names) == 1 and asked.names[0] in TYPES)
    if [words, bool(asked.files), asked.selected].count(True) != 1:
        raise click.UsageError("expected either pods by name (pod NAME, pod/NAME), -f FILE, a selector, or --all.")
    if asked.all_namespaces and not asked.selected:
        raise click.UsageError("-A goes with --all or a selector.")
    if not words:
        return asked
    type_, names = types_and_names(asked.names, ("pods", "secrets"))
    if not names:
        raise click.UsageError(f"expected the names of {type_} behind the type.")
    return replace(asked, type=type_, names=names)


def _grace(asked: int | None, *, now: bool, force: bool) -> int | None:
    """Seconds; None for each pod's own."""
    seconds = None if asked is None or asked < 0 else asked
    if now:
        if seconds is not None:
            raise click.UsageError("--now and --grace-period cannot be specified together.")
        seconds = 1
    if force and seconds:
        raise click.UsageError("--force and --grace-period greater than 0 cannot be specified together.")
    if force:
        return 0
    # By kubectl's rule nobody loses data for a zero alone: who means it says --force.
    return 1 if seconds == 0 else seconds


def _seconds(timeout: str | None) -> float | None:
    if timeout is None or timeout.strip() in ("0", "0s"):
        return None
    return duration("--timeout", timeout) / 1_000


def _keys(node: Session, asked: Asked, moment: Moment) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of pods, and of Secrets."""
    if asked.files:
        read_ = manifest_files.read(asked.files, asked.namespace)
        return tuple(one.key for _, one in read_.pods), tuple(one.key for _, one in read_.secrets)
    named = tuple(f"{asked.namespace}/{name}" for name in asked.names)
    if asked.type == "secrets":
        return (), named
    return (_selected(node, asked, moment) if asked.selected else named), ()


def _selected(node: Session, asked: Asked, moment: Moment) -> tuple[str, ...]:
    wanted = selecting.chosen(asked.selector, asked.field_selector)
    found = [one["metadata"] for one in api_pods(moment, node.settings.node) if wanted(one)]
    return tuple(
        f"{one['namespace']}/{one['name']}"
        for one in found
        if asked.all_namespaces or one["namespace"] == asked.namespace
    )


def _wish(keys: Sequence[str], of_secrets: Sequence[str], grace: int | None, moment: Moment) -> manifests.DeletePods:
    states = ((key, moment.states["pod"].get(key)) for key in keys)
    ending = {key: state.uid for key, state in states if state is not None and state.uid and state.termination}
    return manifests.DeletePods(
        request=new_request(),
        pods=tuple(keys),
        grace_period_seconds=grace,
        ending=ending,
        secrets=tuple(of_secrets),
    )


def _show_queued(wish: manifests.DeletePods, moment: Moment, output: str | None) -> None:
    """A line for each; a pod that the log does not know may be one whose `apply` is queued."""
    queued = "deletion queued: no node agent runs, it is deleted when one starts"
    states = moment.states["pod"]
    unknown = {key for key in wish.pods if key not in states or not states[key].uid}
    what = {f"pod/{key.partition('/')[2]}": key in unknown for key in wish.pods}
    what |= {f"secret/{key.partition('/')[2]}": False for key in wish.secrets}
    for name, absent in what.items():
        remark = " (the log has no such pod now)" if absent else ""
        click.echo(name if output == "name" else f"{name} {queued}{remark}")


def _sorted(answers: Sequence[Answer], *, ignore_not_found: bool) -> tuple[dict[str, set[str]], list[str]]:
    """The uids of withdrawn pods by key, and what was refused."""
    withdrawn: dict[str, set[str]] = {}
    refused: list[str] = []
    for _, event in answers:
        if isinstance(event, manifests.PodWithdrawn):
            withdrawn.setdefault(event.pod, set()).add(event.uid)
        elif isinstance(event, manifests.PodRefused) and not (ignore_not_found and event.reason.endswith(NOT_FOUND)):
            refused.append(refusal(event.pod, event.reason))
    return withdrawn, refused


class _OverdueError(Exception):
    """The time is over."""


def _wait(node: Session, withdrawn: dict[str, set[str]], after: Position, seconds: float | None) -> dict[str, set[str]]:
    """Until all have ended, or for so long; what has not. `after` is before the wish: one may have ended since."""
    left = {key: set(uids) for key, uids in withdrawn.items()}
    deadline = None if seconds is None else time.monotonic() + seconds
    watch = Watch(node.store, "the deletion goes on when one runs again")

    def look() -> None:
        watch.look()
        _check(deadline)

    with progress(f"waiting for the end of {', '.join(left)}") as line, suppress(_OverdueError):
        for entry in follow(node.store, after, look):
            _check(deadline)
            _strike_off(left, entry)
            if not left:
                break
            line.text = f"waiting for the end of {', '.join(left)}"
    return left


def _check(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise _OverdueError


def _strike_off(left: dict[str, set[str]], entry: Entry) -> None:
    """What has ended by this entry, or will never begin: the heir of a pod may be deleted with it."""
    if entry.type not in _TELLING or entry.entity.removeprefix("pod/") not in left:
        return
    event = codec.decode(entry.type, entry.data, Event)
    if isinstance(event, pod.PodEnded):
        left[event.pod].discard(event.uid)
    elif isinstance(event, pod.SuccessorAwaits):
        left[event.pod] &= {event.uid, event.successor or ""}
    key = entry.entity.removeprefix("pod/")
    if not left[key]:
        del left[key]
