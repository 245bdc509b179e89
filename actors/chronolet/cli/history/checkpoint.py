"""`chronolet checkpoint`: prints device allocations in the format of the kubelet's checkpoint file.

Input: the state of `devices`. Output: the content of kubelet_internal_checkpoint on standard output.
Next: tools that read that file.
"""

from __future__ import annotations

import click

from chronolet.cli.get import devices
from chronolet.cli.options import with_settings
from chronolet.cli.session import session
from chronolet.devices.checkpoint import exported
from chronolet.node.settings.settings import Settings
from chronolet_schemas.devices import Answer


@click.command("checkpoint")
@with_settings()
def command(*, settings: Settings) -> None:
    """Print device allocations in the kubelet's checkpoint format (kubelet_internal_checkpoint)."""
    with session(settings) as node:
        click.echo(exported(devices.state_of(node.state("devices")), _serialized), nl=False)


def _serialized(answer: Answer) -> bytes:
    from chronolet.adapters.device_plugins.wire import answer_message  # noqa: PLC0415 - loads protobuf

    return answer_message(answer).SerializeToString(deterministic=True)
