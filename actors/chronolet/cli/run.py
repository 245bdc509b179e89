"""`chronolet run`: hosts actors in this process until it receives a signal to stop.

Input: settings. Output: nothing. Next: `node.main`.
"""

from __future__ import annotations

import gc

import click

from chronolet.cli.loading import DEFAULT_THRESHOLDS, loaded
from chronolet.cli.options import Command, config_option, with_settings
from chronolet.node.settings.common import EVERYWHERE
from chronolet.node.settings.settings import Settings
from chronolet.node.settings.table import SETTINGS

_ON_DEMAND = ("prometheus_client", "yaml", "docker", "docker.transport", "requests")
"""Packages whose `__init__` code runs only when it is needed: the agent uses only part of them, or does not need them
at startup.
"""
_HIDDEN = ("rich", "charset_normalizer", "chardet", "urllib3.contrib.socks")
"""Packages that structlog and requests import if installed, for functions that the agent never calls."""
_MORE = tuple(one.name for one in SETTINGS if one not in EVERYWHERE)


@click.command(cls=Command)
@config_option
@with_settings(*_MORE)
def command(settings: Settings) -> int:
    """Run the node agent. It watches manifests, keeps their pods running and logs every event."""
    gc.set_threshold(*DEFAULT_THRESHOLDS)
    # The composition root imports Docker and the actors; other commands skip that cost.
    return int(loaded("chronolet.node.main", _ON_DEMAND, _HIDDEN).run(settings) or 0)
