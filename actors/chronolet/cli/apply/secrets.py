"""Handles Secrets for `apply` and `delete`: writes them to the node's state folder and sends the node only digests.

Input: Secrets from manifests, the node's replies. Output: files, `manifests.KeptSecret`, a line for each Secret.
Contents are never printed. Next: `apply`, `delete`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from chronolet.cli.errors import Failure, not_found
from chronolet.cli.sending import NOT_FOUND, Reply, wait_for_owner
from chronolet.cli.session import Session
from chronolet.manifests.secrets import already_defined
from chronolet.manifests.state import APPLY, State
from chronolet.ports.pods.secrets import Secret, SecretRefusal
from chronolet_schemas import manifests


def store(node: Session, secrets: Sequence[Secret], *, wait: bool = True) -> tuple[manifests.KeptSecret, ...]:
    """Store the Secrets in the state folder and return them with their digests. `wait`: first wait until an agent is
    running. Raises Failure with the reason if a Secret is refused, or if no agent starts in time.
    """
    if secrets and wait:
        # An agent that starts a new log treats the Secrets in the folder as already applied.
        wait_for_owner(node)
    files = node.services.secrets(node.settings)
    try:
        return tuple(
            manifests.KeptSecret(secret=one.key, type=one.type, digest=files.keep(one, APPLY)) for one in secrets
        )
    except SecretRefusal as refusal:
        raise Failure(str(refusal)) from refusal


def outcome(replies: Sequence[Reply]) -> tuple[dict[str, str], list[str]]:
    """Return the result for each Secret, by namespace/name, and a line for each refusal."""
    done: dict[str, str] = {}
    refused: list[str] = []
    for _, event in replies:
        match event:
            case manifests.SecretApplied(secret=key, replaces=before):
                done[key] = "configured" if before else "created"
            case manifests.SecretUnchanged(secret=key):
                done[key] = "unchanged"
            case manifests.SecretWithdrawn(secret=key):
                done[key] = "deleted"
            case manifests.SecretRefused(secret=key, reason=reason):
                absent = reason.endswith(NOT_FOUND)
                refused.append(not_found("secrets", key.partition("/")[2]) if absent else reason)
            case _:
                pass
    return done, refused


def dry_run(node: Session, secrets: Sequence[Secret]) -> tuple[dict[str, str], list[str]]:
    """Return the result that an apply would have for each Secret, and a line for each refusal."""
    state: State = node.state("manifests").states["manifests"].get("node", State())
    files = node.services.secrets(node.settings)
    words: dict[str, str] = {}
    refused: list[str] = []
    for one in secrets:
        held = state.secrets.get(one.key)
        if held is not None and held.source != APPLY:
            refused.append(already_defined(one.key, APPLY, held.source))
            continue
        same = held is not None and files.read(held.digest) == one
        words[one.key] = f"{'created' if held is None else 'unchanged' if same else 'configured'} (dry run)"
    return words, refused


def show(words: Mapping[str, str], output: str | None) -> None:
    """Print a line for each Secret, in the given order; print nothing if the output format is JSON or YAML."""
    for key, word in words.items() if output in (None, "name") else ():
        click.echo(f"secret/{key.partition('/')[2]}" + ("" if output == "name" else f" {word}"))
