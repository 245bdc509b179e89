"""Secrets in `apply` and `delete`: what they hold goes into the node's state folder, and only a digest to the node.

Comes in: Secrets of manifests, the node's answers. Goes out: files, `manifests.KeptSecret`, a line for each Secret.
What they hold is never printed. Next: `apply`, `delete`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from chronolet.cli.asking import NOT_FOUND, Answer, wait_for_owner
from chronolet.cli.errors import Failure, not_found
from chronolet.cli.session import Session
from chronolet.manifests.state import APPLY, State
from chronolet.ports.pods.secrets import Secret, SecretRefusal
from chronolet_schemas import manifests


def kept(node: Session, secrets: Sequence[Secret], *, wait: bool = True) -> tuple[manifests.KeptSecret, ...]:
    """They lie in the state folder now. Failure with what stands in the way."""
    if secrets and wait:
        # An agent that begins a new log takes what lies there for applied already.
        wait_for_owner(node.store)
    files = node.services.secrets(node.settings)
    try:
        return tuple(
            manifests.KeptSecret(secret=one.key, type=one.type, digest=files.keep(one, APPLY)) for one in secrets
        )
    except SecretRefusal as refusal:
        raise Failure(str(refusal)) from refusal


def outcome(answers: Sequence[Answer]) -> tuple[dict[str, str], list[str]]:
    """What became of each, by namespace/name; and what was refused, and why."""
    done: dict[str, str] = {}
    refused: list[str] = []
    for _, event in answers:
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


def would(node: Session, secrets: Sequence[Secret]) -> tuple[dict[str, str], list[str]]:
    """What an apply would make of each, and what it would refuse."""
    state: State = node.state("manifests").states["manifests"].get("node", State())
    files = node.services.secrets(node.settings)
    words: dict[str, str] = {}
    refused: list[str] = []
    for one in secrets:
        held = state.secrets.get(one.key)
        if held is not None and held.source != APPLY:
            refused.append(f"Secret {one.key} is wanted by {held.source} already (dry run)")
            continue
        same = held is not None and files.read(held.digest) == one
        words[one.key] = f"{'created' if held is None else 'unchanged' if same else 'configured'} (dry run)"
    return words, refused


def show(words: Mapping[str, str], output: str | None) -> None:
    """A line for each, in the order in which they were given; nothing where objects are to be printed."""
    for key, word in words.items() if output in (None, "name") else ():
        click.echo(f"secret/{key.partition('/')[2]}" + ("" if output == "name" else f" {word}"))
