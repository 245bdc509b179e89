"""`chronolet gc`: what of dead containers and unused images would go, and to let it go now.

Comes in: a node, maybe another policy. Goes out: for every object whether it goes and by which rule; or what became of
a run. Next: `gc_plan` asks Docker, by reading calls only, and decides as the collectors do; `gc_run` asks the
collectors to run and follows the log.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from chronolet.cli import engines
from chronolet.cli.options import Command, policy_options, with_settings
from chronolet.cli.session import session
from chronolet.node.settings.table import Settings

_FORM = click.Choice(("json", "yaml"))
OUTPUT = click.option("-o", "--output", type=_FORM, help="another form")
UNUSED = click.option(
    "--unused-images", "unused", is_flag=True, help="every image that is not used, however much room there is"
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
    """Collect dead containers and unused images, or show what would go and why."""


@command.command(cls=Command)
@with_settings("docker")
@policy_options(*_POLICY)
@OUTPUT
@UNUSED
def plan(*, settings: Settings, policy: dict[str, Any], output: str | None, unused: bool) -> None:
    """Show what the next run would remove, and why everything else stays. Nothing is changed.

    The settings are the node agent's own, unless flags name others.
    """
    _show(settings, policy, output, unused=unused, left_alone=False)


@command.command(cls=Command)
@with_settings("docker")
@OUTPUT
@UNUSED
@click.option(
    "--left-alone", is_flag=True, help="only dead containers made for a log that was lost; no image and nothing else"
)
@click.option("--dry-run", is_flag=True, help="show what would go, and change nothing")
def run(*, settings: Settings, output: str | None, unused: bool, left_alone: bool, dry_run: bool) -> int:
    """Collect now: first images, then containers; what only these still used goes with the next run."""
    if left_alone and unused:
        raise click.UsageError("--left-alone removes no images: leave out --unused-images.")
    if not dry_run:
        return int(_part("run").run(settings, output, unused=unused, left_alone=left_alone))
    _show(settings, {}, output, unused=unused, left_alone=left_alone)
    return 0


def _show(settings: Settings, policy: dict[str, Any], output: str | None, *, unused: bool, left_alone: bool) -> None:
    with session(settings) as node:
        asked = engines.of_node(node, node.state("pleg")).settings
    _part("plan").show(asked, policy, output, unused=unused, left_alone=left_alone)


def _part(name: str) -> Any:
    """Loaded when it is needed: the plan takes the collectors' own rules."""
    return importlib.import_module(f"chronolet.cli.gc.{name}")
