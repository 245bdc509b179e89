"""Which Docker Engine a command asks: the one that the node agent uses, which the log records.

Comes in: a session, the state of `pleg`. Goes out: settings that name the engine; a Failure that says why it does not
have a container. A `--docker` flag counts before the log, the log before the environment. Next: `logs`, `exec`, `gc`.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from chronolet.cli.errors import Failure
from chronolet.cli.options import given_as_flag
from chronolet.cli.session import Session
from chronolet.history.state import Moment
from chronolet.node.settings.table import Settings
from chronolet.pleg.actor import NODE
from chronolet.pleg.state import State
from chronolet.ports.runtime.runtime import Runtime


class Engine(NamedTuple):
    """The engine that a command asks, and the one that the log records; both empty where it records none."""

    settings: Settings
    """`docker` is the address that is asked."""
    endpoint: str
    engine_id: str

    def without(self, runtime: Runtime, container_id: str, pod: str, more: str = "") -> Failure:
        """What to say of a container that this engine does not have: removed, or another engine's. Refusal."""
        about, asked = f"container {container_id[:12]} of pod {pod}", self.settings.docker
        found = runtime.engine().id
        if not self.engine_id or not found:
            return Failure(
                f"{about} is not in the Docker Engine at {asked}: it was removed, or another engine has it; "
                "the log does not record which engine the node agent uses, name it by --docker URL"
            )
        if found == self.engine_id:
            return Failure(f"{about} was removed from Docker{f', {more}' if more else ''}")
        node = f"node {self.settings.node} uses the one at {self.endpoint} (engine id {self.engine_id})"
        remedy = (
            "start that engine again, or restart the node agent"
            if asked == self.endpoint
            else f"leave out --docker, or say --docker {self.endpoint}"
        )
        return Failure(
            f"{about} is not in the Docker Engine that was asked, at {asked} (engine id {found}); {node}: {remedy}"
        )


def of_node(node: Session, moment: Moment) -> Engine:
    """The engine to ask; `moment` holds the state of `pleg`."""
    known: State = moment.states["pleg"].get(NODE, State())
    named = given_as_flag("docker") or not known.endpoint
    settings = node.settings if named else msgspec.structs.replace(node.settings, docker=known.endpoint)
    return Engine(settings, known.endpoint, known.engine_id)
