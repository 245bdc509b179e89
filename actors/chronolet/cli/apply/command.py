"""`chronolet apply -f`: sets the desired pods and Secrets from manifests.

Input: files. Output: `manifests.ApplyPods`, and a line for each pod and Secret once the node has responded, or
immediately with `--wait=false` if no agent is running. `--dry-run` sends nothing: it reads the manifests and compares
them with the node's log if that is reachable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from chronolet.cli.apply import manifests as manifest_files
from chronolet.cli.apply import predicted_admission, secrets
from chronolet.cli.apply.manifests import Read
from chronolet.cli.errors import Failure
from chronolet.cli.options import Command, namespace_option, with_settings
from chronolet.cli.printing.differences import differences
from chronolet.cli.printing.plain import dump
from chronolet.cli.sending import Queued, Reply, ask, ask_or_queue, new_request, refusal
from chronolet.cli.services import services_of_command
from chronolet.cli.session import session
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet.manifests.decider import already_defined
from chronolet.manifests.identity import applied_uid
from chronolet.manifests.state import APPLY
from chronolet.node.settings.settings import Settings
from chronolet.ports.pods.secrets import Secret
from chronolet.qos.state import State
from chronolet_schemas import manifests, podspec


@click.command(cls=Command)
@with_settings()
@namespace_option
@manifest_files.options
@click.option(
    "--dry-run",
    # `--dry-run=client` as kubectl spells it; kubectl's `server` mode does not exist here.
    type=click.Choice(["client"]),
    is_flag=False,
    flag_value="client",
    metavar="[client]",
    help="only print what would be done; needs no agent, Docker or Redis",
)
@click.option(
    "--allow-unrunnable",
    is_flag=True,
    help="with --dry-run: exit with status 0 even if the node would reject a pod or could not start it",
)
@click.option("--strict", is_flag=True, help="reject manifests with fields that are not honoured")
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="--wait=false: if no node agent is running, queue the manifests for the next one and succeed",
)
@click.option("-o", "--output", type=click.Choice(["name", "json", "yaml"]), help="output format")
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
    """Apply manifests: create or change pods and Secrets."""
    if not files:
        raise click.UsageError("must specify -f FILE.")
    download = services_of_command().download
    found = manifest_files.read(files, namespace, settings.node, download=download)
    report_findings(found, strict=strict)
    pods, secret_list = tuple(pod for _, pod in found.pods), tuple(secret for _, secret in found.secrets)
    if dry_run:
        expected: list[predicted_admission.Foreseen] = []
        words, of_secrets, refused = _dry_run(settings, pods, secret_list, expected, strict=strict)
        secrets.show(of_secrets, output)
        show([pod for pod in pods if pod.key in words], words, output)
        refused += [] if allow_unrunnable else [*_unrunnable(found), *_rejected(expected)]
        if refused:
            raise Failure(*refused)
        return
    with session(settings, patient=True) as node:
        report_foreseen(predicted_admission.of(node, pods), strict=strict)
        request = new_request()
        stored = secrets.store(node, secret_list, wait=wait)
        apply = manifests.ApplyPods(request=request, pods=pods, secrets=stored)
        replies = ask(node, apply) if wait else ask_or_queue(node, apply)
    if isinstance(replies, Queued):
        word = "queued: no node agent is running; it will be applied when one starts"
        secrets.show(dict.fromkeys((one.key for one in secret_list), word), output)
        show(pods, dict.fromkeys((pod.key for pod in pods), word), output)
        return
    done, refused = _outcome(request, replies)
    of_secrets, more = secrets.outcome(replies)
    refused = more + refused
    secrets.show(of_secrets, output)
    show([pod for pod in pods if pod.key in done], done, output)
    if refused:
        raise Failure(*refused)


def report_findings(found: Read, *, strict: bool) -> None:
    """Print a warning on stderr for each field that is not honoured; with `--strict`, raise Failure instead."""
    lines = [_line(file, finding) for file, finding in found.findings]
    if strict and lines:
        raise Failure(*lines)
    for line in lines:
        click.echo(f"warning: {line}", err=True)


def report_foreseen(found: Sequence[predicted_admission.Foreseen], *, strict: bool) -> None:
    """Print a warning for each predicted rejection, wait or label mismatch; with `--strict`, raise Failure instead."""
    if strict and found:
        raise Failure(*(str(one) for one in found))
    for one in found:
        click.echo(f"warning: {one}", err=True)


def _rejected(found: Sequence[predicted_admission.Foreseen]) -> list[str]:
    rejected = dict.fromkeys(one.pod for one in found if one.rejected)
    return [f"pod {key} would be rejected (dry run; --allow-unrunnable accepts it)" for key in rejected]


def _unrunnable(found: Read) -> list[str]:
    """Return a line for each pod that can be applied but cannot start."""
    blocking = (finding for _, finding in found.findings if finding.severity == podspec.BLOCKING)
    stuck = dict.fromkeys(finding.pod for finding in blocking if finding.pod)
    why = "cannot start because of the fields named above (dry run; --allow-unrunnable accepts it)"
    return [f"pod {key} {why}" for key in stuck]


def _line(file: str, finding: podspec.Finding) -> str:
    document = f": document {finding.document}" if finding.document else ""
    consequence = "; it cannot start" if finding.severity == podspec.BLOCKING else ""
    return f"{file}{document}: {finding}{consequence}"


def show(pods: Sequence[podspec.Pod], words: Mapping[str, str], output: str | None) -> None:
    """Print a line for each pod, or the pods as JSON or YAML."""
    if output in ("json", "yaml"):
        plain = [podspec.to_plain(pod) for pod in pods]
        whole = plain[0] if len(plain) == 1 else {"apiVersion": "v1", "kind": "List", "items": plain}
        click.echo(dump(whole, output))
        return
    for pod in pods:
        click.echo(f"pod/{pod.metadata.name}" + ("" if output == "name" else f" {words[pod.key]}"))


def _outcome(request: str, replies: Sequence[Reply]) -> tuple[dict[str, str], list[str]]:
    done: dict[str, str] = {}
    refused: list[str] = []
    for _, event in replies:
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


def _dry_run(
    settings: Settings,
    pods: Sequence[podspec.Pod],
    secret_list: Sequence[Secret],
    expected: list[predicted_admission.Foreseen],
    *,
    strict: bool,
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Predict from the node's log what an apply would do.

    Return the outcome to print for each pod and for each Secret, and the refusals.
    Without a log, report only that the manifests are valid. Append the predicted admission outcomes to `expected`.
    """
    try:
        with session(settings) as node:
            of_secrets, refused = secrets.dry_run(node, secret_list) if secret_list else ({}, [])
            before = {state.pod: state for state in node.state("pod").states["pod"].values() if state.uid}
            expected += predicted_admission.of(node, pods)
    except (Failure, StoreUnreachable, StoreBroken):
        expected += predicted_admission.foreseen(State(), pods)
        report_foreseen(expected, strict=strict)
        valid = "valid (dry run, no log of this node to compare with)"
        return (
            dict.fromkeys((pod.key for pod in pods), valid),
            dict.fromkeys((one.key for one in secret_list), valid),
            [],
        )
    report_foreseen(expected, strict=strict)
    taken = {pod.key for pod in pods if pod.key in before and before[pod.key].source != APPLY}
    refused += [refusal(key, already_defined(key, APPLY, before[key].source)) for key in sorted(taken)]
    known = {key: state.manifest for key, state in before.items()}
    words = {pod.key: _change(known.get(pod.key), pod) for pod in pods if pod.key not in taken}
    return words, of_secrets, refused


def _change(before: podspec.Pod | None, after: podspec.Pod) -> str:
    if before is None:
        return "created (dry run)"
    lines = list(map(str, differences(podspec.to_plain(before), podspec.to_plain(after))))
    return "\n  ".join([f"{'configured' if lines else 'unchanged'} (dry run)", *lines])
