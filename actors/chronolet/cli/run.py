"""`chronolet run`: hosts actors in this process until it is told to stop.

Comes in: settings. Goes out: nothing. Next: `node.main`.
"""

from __future__ import annotations

import gc
import importlib
from typing import Any

import click

from chronolet.cli.options import Command, config_option, with_settings
from chronolet.node.settings import EVERYWHERE, SETTINGS, Settings

_MORE = tuple(one.name for one in SETTINGS if one.name not in EVERYWHERE)


@click.command(cls=Command)
@config_option
@with_settings(*_MORE)
def command(settings: Settings) -> int:
    """Run the node agent: watch manifests, keep their pods running, remember everything."""
    # The composition root pulls in Docker and the actors: only this command pays for it.
    return int(_imported("chronolet.node.main").run(settings) or 0)


def _imported(name: str) -> Any:
    """A module, with all that it imports kept from the garbage collector.

    Modules, classes and functions stay as long as the process. Looking through them again and again, while they are
    made and ever after, costs a fifth of the time that the import takes.
    """
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()
