"""`chronolet gc`: plans or runs the collection of dead containers and unused images.

Input: a node, and for a plan optionally another policy. Output: the action for every object and the rule behind it, or
the result of a run. Next: `plan`, which queries Docker with read-only calls and decides as the collectors do; `run`,
which makes the collectors run and follows the log.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from chronolet.cli import engines
from chronolet.cli.options import Command, policy_options, with_settings
from chronolet.cli.session import session
from chronolet.node.settings.settings import Settings

_FORM = click.Choice(("json", "yaml"))
OUTPUT = click.option("-o", "--output", type=_FORM, help="output format")
UNUSED = click.option(
    "--unused-images", "unused", is_flag=True, help="remove every unused image, regardless of disk usage"
)

_POLICY = (
    "minimum_container_ttl_duration",
    "maximum_dead_containers_per_container",
    "maximum_dead_containers",
    "image_gc_high_threshold",
    "image_gc_low_threshold",
    "minimum_image_ttl_duration",
    "image_maximum_gc_age",
    "pinned_images",
)


@click.group()
def command() -> None:
    """Collect dead containers and unused images. `plan` shows what would be removed and why, `run` removes it."""


@command.command(cls=Command)
@with_settings("docker")
@policy_options(*_POLICY)
@OUTPUT
@UNUSED
def plan(*, settings: Settings, policy: dict[str, Any], output: str | None, unused: bool) -> None:
    """Show what the next run would remove, and why it would keep other objects. Changes nothing.

    Uses the node agent's settings unless flags override them.
    """
    _show(settings, policy, output, unused=unused, left_alone=False)


@command.command(cls=Command)
@with_settings("docker")
@OUTPUT
@UNUSED
@click.option("--left-alone", is_flag=True, help="remove only dead containers of a lost log, and no images")
@click.option("--dry-run", is_flag=True, help="show what would be removed, without removing it")
def run(*, settings: Settings, output: str | None, unused: bool, left_alone: bool, dry_run: bool) -> int:
    """Run garbage collection now: images first, then containers. Images that only the removed containers used are
    removed in the next run.
    """
    if left_alone and unused:
        raise click.UsageError("--left-alone removes no images: omit --unused-images.")
    if not dry_run:
        return int(_part("run").run(settings, output, unused=unused, left_alone=left_alone))
    _show(settings, {}, output, unused=unused, left_alone=left_alone)
    return 0


def _show(settings: Settings, policy: dict[str, Any], output: str | None, *, unused: bool, left_alone: bool) -> None:
    with session(settings) as node:
        engine = engines.of_node(node, node.state("pleg"))
    _part("plan").show(engine.settings, policy, output, unused=unused, left_alone=left_alone)


def _part(name: str) -> Any:
    """Import a module of this package on demand, because importing the collectors' rules takes time."""
    return importlib.import_module(f"chronolet.cli.gc.{name}")
