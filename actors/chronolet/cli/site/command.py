"""`chronolet node move`: records that a node now lives on this machine and engine, which replace its former ones.

Input: a node, this machine's id and engine. Output: what happens to the pods; after confirmation, the new site in the
log, written only if no live process owns a shard of a kind that touches the node. Next: agents on this machine, which
then host the node (`node.site`).
"""

from __future__ import annotations

import os
import sys

import click

from chronolet.cli.errors import Failure
from chronolet.cli.options import Command, with_settings
from chronolet.cli.session import Session, session
from chronolet.cli.site import owners, pods
from chronolet.kernel.storage.redis.sites import RedisSites, Site
from chronolet.node.settings.settings import Settings
from chronolet.ports.runtime.runtime import Runtime


@click.group()
def command() -> None:
    """Move the node to this machine and Docker Engine, in place of those that were replaced."""


@command.command(cls=Command)
@with_settings("docker", "machine_id_file")
@click.option("-y", "--yes", is_flag=True, help="do not ask for confirmation")
def move(*, settings: Settings, yes: bool) -> None:
    """Record that the node lives on this machine and its Docker Engine. Run this command here, after the agent on
    the former machine or engine has ended. Agents on this machine then start the node's pods here.

    Refused while a process that touches the node is alive. Containers on the former machine are not stopped:
    make sure that it is gone, or remove them there.
    """
    with session(settings) as node:
        sites, runtime = node.services.sites(settings), node.services.runtime(settings)
        try:
            _move(node, sites, runtime, yes=yes)
        finally:
            runtime.close()
            sites.close()


def _move(node: Session, sites: RedisSites, runtime: Runtime, *, yes: bool) -> None:
    name = node.settings.node
    former, here = sites.recorded(), _here(node, runtime)
    if former.site == here:
        click.echo(f"node {name} lives here already: {here}")
        return
    tokens = owners.released(node)
    click.echo(f"node {name}\n  from  {former.site or 'no recorded site'}\n  to    {here}")
    for line in pods.outcomes(node, runtime):
        click.echo(f"  {line}")
    _confirm(name, yes=yes)
    tokens = owners.unchanged(node, tokens)
    if not sites.record(former.run, former.site, here, f"cli/{os.getpid()}", tokens):
        raise Failure(f"node {name} changed in the meantime, nothing was recorded: run the command again")
    click.echo(f"moved: agents on this machine now host node {name}")


def _here(node: Session, runtime: Runtime) -> Site:
    """Return this machine's site. Raises Refusal if its engine does not answer, and Failure if it has no machine id."""
    from chronolet.adapters.machine.machine_id import MachineIdUnknown, read_machine_id  # noqa: PLC0415 - see `services`

    try:
        machine_id = read_machine_id(node.settings.machine_id_file)
    except MachineIdUnknown as unknown:
        raise Failure(str(unknown)) from unknown
    engine = runtime.engine()
    return Site(machine_id=machine_id, engine_id=engine.id, engine_root=engine.root)


def _confirm(name: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure("standard input is not a terminal: confirm with --yes; nothing was recorded")
    if not click.confirm(f"Move node {name} here?"):
        raise Failure("not confirmed, nothing was recorded")
