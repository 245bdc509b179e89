"""`chronolet delete`: withdraws pods and Secrets from the desired state.

Input: names, labels or manifests. Output: `manifests.DeletePods`, and a line for each object. By default the line
for a pod is printed once the log has `pod.PodEnded`, which means that nothing of the pod is left. Deleting a
terminating pod again can shorten its grace period. Source: kubectl's pkg/cmd/delete.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import click

from chronolet.cli.apply import manifests as manifest_files
from chronolet.cli.apply import secrets
from chronolet.cli.completion.candidates import types_then_pods
from chronolet.cli.errors import Failure
from chronolet.cli.get import selecting
from chronolet.cli.get.api_form import api_pods
from chronolet.cli.naming import TYPES, types_and_names
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.printing.progress import progress
from chronolet.cli.sending import NOT_FOUND, Queued, Reply, Watch, ask, ask_or_queue, follow, new_request, refusal
from chronolet.cli.session import Session, session
from chronolet.history.state import Moment
from chronolet.node.settings.settings import Settings
from chronolet.node.settings.values import duration
from chronolet_schemas import codec, manifests, pod, registry
from chronolet_schemas.envelope import Entry, Event, Position

_END_TYPES = {registry.type_of(kind) for kind in (pod.PodEnded, pod.SuccessorAwaits)}


_WAIT = "wait for the pods to be gone; --wait=false: do not wait, and queue the deletion if no node agent is running"


@dataclass(frozen=True, kw_only=True)
class Targets:
    """The pods or Secrets to delete."""

    namespace: str
    names: Sequence[str]
    type: str = "pods"
    """The type of the named objects: `pods` or `secrets`."""
    files: manifest_files.Files
    selector: selecting.Predicate | None
    field_selector: selecting.Predicate | None
    everything: bool
    """Whether to delete all pods in the namespace."""
    all_namespaces: bool

    @property
    def selected(self) -> bool:
        """Whether the pods are chosen by a selector or `--all` rather than by name."""
        return self.everything or self.selector is not None or self.field_selector is not None


@click.command(cls=Command)
@with_settings()
@namespace_option
@click.argument(
    "names", nargs=-1, metavar="(pod NAME... | pod/NAME... | secret NAME...)", shell_complete=types_then_pods
)
@manifest_files.options
@selecting.options
@click.option("--all", "everything", is_flag=True, help="all pods in the namespace")
@click.option("-A", "--all-namespaces", is_flag=True, help="all namespaces; requires --all or a selector")
@click.option(
    "--grace-period",
    type=click.IntRange(min=-1),
    metavar="SECONDS",
    help="time to terminate gracefully; -1 for each pod's own [default]",
)
@click.option("--now", is_flag=True, help="immediate shutdown; same as --grace-period 1")
@click.option("--force", is_flag=True, help="kill immediately; same as --grace-period 0 --no-wait")
@click.option("--wait/--no-wait", default=True, show_default=True, help=_WAIT)
@click.option("--timeout", metavar="DURATION", help="time to wait before giving up; 0 waits without a limit [default]")
@click.option("--ignore-not-found", is_flag=True, help='treat "not found" as success')
@click.option("-o", "--output", type=click.Choice(["name"]), help="output format")
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
    """Delete pods and Secrets. For a pod that is already terminating, shorten its grace period."""
    targets = _targets(**which)
    grace, seconds = _grace(grace_period, now=now, force=force), _seconds(timeout)
    with session(settings, patient=True) as node:
        moment = node.state("pod", pods=_named(targets) if targets.type == "pods" else ())
        keys, of_secrets = _keys(node, targets, moment)
        if not keys and not of_secrets:
            click.echo("No resources found.", err=True)
            return
        delete = _delete(keys, of_secrets, grace, moment)
        replies = ask(node, delete) if wait else ask_or_queue(node, delete)
        if isinstance(replies, Queued):
            _show_queued(delete, moment, output)
            return
        withdrawn, refused = _sorted(replies, ignore_not_found=ignore_not_found)
        done, more = secrets.outcome(replies)
        secrets.show(done, output)
        refused += [line for line in more if not (ignore_not_found and line.endswith(NOT_FOUND))]
        late = _wait(node, withdrawn, moment.position, seconds) if wait and not force and withdrawn else {}
    for key in keys:
        if key in withdrawn and key not in late:
            click.echo(f"pod/{key.partition('/')[2]}" + ("" if output == "name" else " deleted"))
    refused += [f"timed out waiting for the condition on pods/{key.partition('/')[2]}" for key in late]
    if refused:
        raise Failure(*refused)


def _targets(**which: object) -> Targets:
    targets = Targets(**which)  # type: ignore[arg-type]
    named = bool(targets.names) and not (targets.selected and len(targets.names) == 1 and targets.names[0] in TYPES)
    if [named, bool(targets.files), targets.selected].count(True) != 1:
        raise click.UsageError("specify exactly one of: names (pod NAME, pod/NAME), -f FILE, a selector, --all.")
    if targets.all_namespaces and not targets.selected:
        raise click.UsageError("-A requires --all or a selector.")
    if not named:
        return targets
    type_, names = types_and_names(targets.names, ("pods", "secrets"))
    if not names:
        raise click.UsageError(f"expected the names of {type_} after the type.")
    return replace(targets, type=type_, names=names)


def _grace(given: int | None, *, now: bool, force: bool) -> int | None:
    """Return the grace period in seconds, or None to use the grace period in each pod's spec."""
    seconds = None if given is None or given < 0 else given
    if now:
        if seconds is not None:
            raise click.UsageError("--now and --grace-period cannot be specified together.")
        seconds = 1
    if force and seconds:
        raise click.UsageError("--force and --grace-period greater than 0 cannot be specified together.")
    if force:
        return 0
    # As in kubectl, zero alone does not kill immediately; that requires --force.
    return 1 if seconds == 0 else seconds


def _seconds(timeout: str | None) -> float | None:
    if timeout is None or timeout.strip() in ("0", "0s"):
        return None
    return duration("--timeout", timeout) / 1_000


def _keys(node: Session, targets: Targets, moment: Moment) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys of the targeted pods, and the keys of the targeted Secrets."""
    if targets.files:
        read_ = manifest_files.read(targets.files, targets.namespace, download=node.services.download)
        return tuple(one.key for _, one in read_.pods), tuple(one.key for _, one in read_.secrets)
    if targets.type == "secrets":
        return (), _named(targets)
    return (_selected(node, targets, moment) if targets.selected else _named(targets)), ()


def _named(targets: Targets) -> tuple[str, ...]:
    """Return the keys of the objects given by name; empty if a selector or files are given instead."""
    if targets.selected or targets.files:
        return ()
    return tuple(f"{targets.namespace}/{name}" for name in targets.names)


def _selected(node: Session, targets: Targets, moment: Moment) -> tuple[str, ...]:
    matches = selecting.chosen(targets.selector, targets.field_selector)
    found = [one["metadata"] for one in api_pods(moment, node.settings.node) if matches(one)]
    return tuple(
        f"{one['namespace']}/{one['name']}"
        for one in found
        if targets.all_namespaces or one["namespace"] == targets.namespace
    )


def _delete(keys: Sequence[str], of_secrets: Sequence[str], grace: int | None, moment: Moment) -> manifests.DeletePods:
    states = ((key, moment.states["pod"].get(key)) for key in keys)
    ending = {key: state.uid for key, state in states if state is not None and state.uid and state.termination}
    return manifests.DeletePods(
        request=new_request(),
        pods=tuple(keys),
        grace_period_seconds=grace,
        ending=ending,
        secrets=tuple(of_secrets),
    )


def _show_queued(delete: manifests.DeletePods, moment: Moment, output: str | None) -> None:
    """Print a line for each object. A pod that is not in the log may be created by an `apply` queued earlier."""
    queued = "deletion queued: no node agent is running; it will be deleted when one starts"
    states = moment.states["pod"]
    unknown = {key for key in delete.pods if key not in states or not states[key].uid}
    what = {f"pod/{key.partition('/')[2]}": key in unknown for key in delete.pods}
    what |= {f"secret/{key.partition('/')[2]}": False for key in delete.secrets}
    for name, absent in what.items():
        remark = " (not in the log at present)" if absent else ""
        click.echo(name if output == "name" else f"{name} {queued}{remark}")


def _sorted(replies: Sequence[Reply], *, ignore_not_found: bool) -> tuple[dict[str, set[str]], list[str]]:
    """Return the uids of the withdrawn pods by key, and a line for each refusal."""
    withdrawn: dict[str, set[str]] = {}
    refused: list[str] = []
    for _, event in replies:
        if isinstance(event, manifests.PodWithdrawn):
            withdrawn.setdefault(event.pod, set()).add(event.uid)
        elif isinstance(event, manifests.PodRefused) and not (ignore_not_found and event.reason.endswith(NOT_FOUND)):
            refused.append(refusal(event.pod, event.reason))
    return withdrawn, refused


class _OverdueError(Exception):
    """Raised when the deadline has passed."""


def _wait(node: Session, withdrawn: dict[str, set[str]], after: Position, seconds: float | None) -> dict[str, set[str]]:
    """Wait until all pods have ended or `seconds` have passed (None: no limit); return those that have not ended.

    `after`: a position before the request, because a pod may have ended since the request.
    """
    left = {key: set(uids) for key, uids in withdrawn.items()}
    deadline = None if seconds is None else time.monotonic() + seconds
    watch = Watch(node, "the deletion continues when one runs again")

    def look() -> None:
        watch.look()
        _check(deadline)

    with progress(f"waiting for deletion of {', '.join(left)}") as line, suppress(_OverdueError):
        for entry in follow(node.store, after, look):
            _check(deadline)
            _remove_ended(left, entry)
            if not left:
                break
            line.text = f"waiting for deletion of {', '.join(left)}"
    return left


def _check(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise _OverdueError


def _remove_ended(left: dict[str, set[str]], entry: Entry) -> None:
    """Remove from `left` a pod that this entry records as ended, or a successor that will never start.

    A delete may cover a pod and its successor.
    """
    if entry.type not in _END_TYPES or entry.entity.removeprefix("pod/") not in left:
        return
    event = codec.decode(entry.type, entry.data, Event)
    if isinstance(event, pod.PodEnded):
        left[event.pod].discard(event.uid)
    elif isinstance(event, pod.SuccessorAwaits):
        left[event.pod] &= {event.uid, event.successor or ""}
    key = entry.entity.removeprefix("pod/")
    if not left[key]:
        del left[key]
