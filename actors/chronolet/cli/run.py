"""`chronolet run`: hosts actors in this process until it is told to stop.

Comes in: settings. Goes out: nothing. Next: `node.main`.
"""

from __future__ import annotations

import click

from chronolet.cli.loading import loaded
from chronolet.cli.options import Command, config_option, with_settings
from chronolet.node.settings.table import EVERYWHERE, SETTINGS, Settings

_BY_NEED = ("prometheus_client", "yaml")
"""Packages of which the agent uses some modules only, or nothing before it acts."""
_MORE = tuple(one.name for one in SETTINGS if one.name not in EVERYWHERE)


@click.command(cls=Command)
@config_option
@with_settings(*_MORE)
def command(settings: Settings) -> int:
    """Run the node agent: watch manifests, keep their pods running, remember everything."""
    # The composition root pulls in Docker and the actors: only this command pays for it.
    return int(loaded("chronolet.node.main", _BY_NEED).run(settings) or 0)
