"""`chronolet apply -f`: wants pods and Secrets as manifests say.

Comes in: files. Goes out: `manifests.ApplyPods`, and a line for each pod and Secret once the node has answered, or at
once with `--wait=false` where no agent runs. With `--dry-run` nothing is sent; the manifests are read, and compared
with the node's log where there is one to be reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from chronolet.cli.apply import foreseen, secrets
from chronolet.cli.apply import manifests as manifest_files
from chronolet.cli.apply.differences import differences
from chronolet.cli.apply.manifests import Read
from chronolet.cli.asking import Answer, Queued, ask, ask_or_queue, new_request, refusal
from chronolet.cli.errors import Failure
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.printing.plain import dump
from chronolet.cli.session import session
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet.manifests.identity import applied_uid
from chronolet.manifests.state import APPLY
from chronolet.node.settings.table import Settings
from chronolet.ports.pods.secrets import Secret
from chronolet.qos.state import State
from chronolet_schemas import manifests, podspec


@click.command(cls=Command)
@with_settings()
@namespace_option
@manifest_files.options
@click.option(
    "--dry-run",
    # kubectl's spelling of it too, which has another kind that asks a server.
    type=click.Choice(["client"]),
    is_flag=False,
    flag_value="client",
    metavar="[client]",
    help="only say what would be done; needs neither agent nor Docker nor Redis",
)
@click.option(
    "--allow-unrunnable",
    is_flag=True,
    help="with --dry-run: status 0 also for pods that cannot start because of fields that are not honoured",
)
@click.option("--strict", is_flag=True, help="refuse manifests with fields that are not honoured")
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="--wait=false: where no node agent runs, queue the manifests for the next one and succeed",
)
@click.option("-o", "--output", type=click.Choice(["name", "json", "yaml"]), help="print the pods instead")
def command(
    *,
    settings: Settings,
    namespace: str,
    files: manifest_files.Files,
    dry_run: str | None,
    allow_unrunnable: bool,
    strict: bool,
    wait: bool,
    output: str | None,
) -> None:
    """Apply manifests: create these pods, or change them."""
    if not files:
        raise click.UsageError("expected -f FILE.")
    found = manifest_files.read(files, namespace, settings.node)
    tell_findings(found, strict=strict)
    pods, kept = tuple(pod for _, pod in found.pods), tuple(secret for _, secret in found.secrets)
    if dry_run:
        told: list[foreseen.Foreseen] = []
        words, of_secrets, refused = _would(settings, pods, kept, told, strict=strict)
        secrets.show(of_secrets, output)
        show([pod for pod in pods if pod.key in words], words, output)
        refused += [] if allow_unrunnable else [*_unrunnable(found), *_rejected(told)]
        if refused:
            raise Failure(*refused)
        return
    with session(settings, patient=True) as node:
        tell_foreseen(foreseen.of(node, pods), strict=strict)
        request = new_request()
        wanted = secrets.kept(node, kept, wait=wait)
        wish = manifests.ApplyPods(request=request, pods=pods, secrets=wanted)
        answers = ask(node, wish) if wait else ask_or_queue(node, wish)
    if isinstance(answers, Queued):
        word = "queued: no node agent runs, it is applied when one starts"
        secrets.show(dict.fromkeys((one.key for one in kept), word), output)
        show(pods, dict.fromkeys((pod.key for pod in pods), word), output)
        return
    done, refused = _outcome(request, answers)
    of_secrets, more = secrets.outcome(answers)
    refused = more + refused
    secrets.show(of_secrets, output)
    show([pod for pod in pods if pod.key in done], done, output)
    if refused:
        raise Failure(*refused)


def tell_findings(found: Read, *, strict: bool) -> None:
    """Every field that is not honoured, on stderr; a Failure with them all under `--strict`."""
    lines = [_line(file, finding) for file, finding in found.findings]
    if strict and lines:
        raise Failure(*lines)
    for line in lines:
        click.echo(f"warning: {line}", err=True)


def tell_foreseen(found: Sequence[foreseen.Foreseen], *, strict: bool) -> None:
    """What the node will say of the pods, likewise."""
    if strict and found:
        raise Failure(*(str(one) for one in found))
    for one in found:
        click.echo(f"warning: {one}", err=True)


def _rejected(found: Sequence[foreseen.Foreseen]) -> list[str]:
    rejected = dict.fromkeys(one.pod for one in found if one.rejected)
    return [f"pod {key} would be rejected (dry run; --allow-unrunnable accepts it)" for key in rejected]


def _unrunnable(found: Read) -> list[str]:
    """A line for each pod that could be applied, but not started."""
    blocking = (finding for _, finding in found.findings if finding.severity == podspec.BLOCKING)
    stuck = dict.fromkeys(finding.pod for finding in blocking if finding.pod)
    why = "cannot start because of the fields named above (dry run; --allow-unrunnable accepts it)"
    return [f"pod {key} {why}" for key in stuck]


def _line(file: str, finding: podspec.Finding) -> str:
    document = f": document {finding.document}" if finding.document else ""
    consequence = "; it cannot start" if finding.severity == podspec.BLOCKING else ""
    return f"{file}{document}: {finding}{consequence}"


def show(pods: Sequence[podspec.Pod], words: Mapping[str, str], output: str | None) -> None:
    """A line for each pod, or the pods themselves."""
    if output in ("json", "yaml"):
        plain = [podspec.to_plain(pod) for pod in pods]
        whole = plain[0] if len(plain) == 1 else {"apiVersion": "v1", "kind": "List", "items": plain}
        click.echo(dump(whole, output))
        return
    for pod in pods:
        click.echo(f"pod/{pod.metadata.name}" + ("" if output == "name" else f" {words[pod.key]}"))


def _outcome(request: str, answers: Sequence[Answer]) -> tuple[dict[str, str], list[str]]:
    done: dict[str, str] = {}
    refused: list[str] = []
    for _, event in answers:
        match event:
            case manifests.PodApplied(pod=pod, uid=uid):
                done[pod] = "created" if uid == applied_uid(request=request, pod=pod) else "configured"
            case manifests.ApplyUnchanged(pod=pod):
                done[pod] = "unchanged"
            case manifests.PodRefused(pod=pod, reason=reason):
                refused.append(refusal(pod, reason))
            case _:
                pass
    return done, refused


def _would(
    settings: Settings,
    pods: Sequence[podspec.Pod],
    kept: Sequence[Secret],
    told: list[foreseen.Foreseen],
    *,
    strict: bool,
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """What an apply would do, by the node's log, and what it would refuse; without a log, only that the manifests can
    be applied. `told` gets what the node would say of them.
    """
    try:
        with session(settings) as node:
            of_secrets, refused = secrets.would(node, kept) if kept else ({}, [])
            before = {state.pod: state for state in node.state("pod").states["pod"].values() if state.uid}
            told += foreseen.of(node, pods)
    except (Failure, StoreUnreachable, StoreBroken):
        told += foreseen.foreseen(State(), pods)
        tell_foreseen(told, strict=strict)
        valid = "valid (dry run, no log of this node to compare with)"
        return dict.fromkeys((pod.key for pod in pods), valid), dict.fromkeys((one.key for one in kept), valid), []
    tell_foreseen(told, strict=strict)
    taken = {pod.key for pod in pods if pod.key in before and before[pod.key].source != APPLY}
    refused += [f"{key} is wanted by {before[key].source} already (dry run)" for key in sorted(taken)]
    known = {key: state.manifest for key, state in before.items()}
    words = {pod.key: _change(known.get(pod.key), pod) for pod in pods if pod.key not in taken}
    return words, of_secrets, refused


def _change(before: podspec.Pod | None, after: podspec.Pod) -> str:
    if before is None:
        return "created (dry run)"
    lines = list(differences(podspec.to_plain(before), podspec.to_plain(after)))
    return "\n  ".join([f"{'configured' if lines else 'unchanged'} (dry run)", *lines])
