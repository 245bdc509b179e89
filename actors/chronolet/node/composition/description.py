"""Describes this process for the log: version, settings, machine (docs/adr/0044).

Input: settings, the engine's identity as far as it is known. Output: `kernel.ProcessStarted`. Next: `wiring`.
"""

from __future__ import annotations

import platform
from collections.abc import Callable

from chronolet.adapters.machine.boot import boot_id
from chronolet.adapters.machine.machine_id import MachineIdUnknown, read_machine_id
from chronolet.node.composition.parts import agent_version
from chronolet.node.settings.plain import digest, plain_settings
from chronolet.node.settings.table import Settings
from chronolet.ports.runtime.runtime import EngineIdentity
from chronolet_schemas.kernel import ProcessStarted


def description(settings: Settings, engine: Callable[[], EngineIdentity | None], process: str) -> ProcessStarted:
    """Describe the process with this id. `engine` returns the identity of the engine if it has answered, and does not
    wait for it.
    """
    plain, identity = plain_settings(settings), engine()
    return ProcessStarted(
        process=process,
        version=agent_version(),
        kinds=sorted(settings.actors),
        settings=plain,
        settings_digest=digest(plain),
        machine_id=_machine_id(settings),
        architecture=platform.machine(),
        boot_id=boot_id(),
        engine_id=identity.id if identity else "",
        engine_root=identity.root if identity else "",
    )


def _machine_id(settings: Settings) -> str:
    try:
        return read_machine_id(settings.machine_id_file)
    except MachineIdUnknown:
        return ""
