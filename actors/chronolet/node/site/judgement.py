"""Decides whether this process may touch the node from here. Pure.

Input: the machine and the engine found here, and the recorded site. Output: `Verdict`. Next: `guard`.

    recorded site    found here                 verdict
    any              no machine id              refused, until the file holds one
    none             anything else              unrecorded
    a site           another machine            refused
    a site           its machine, no engine     allowed: nothing can be touched through an engine that does not answer
    a site           another engine             refused
    a site           its machine, its engine    allowed
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from chronolet.kernel.storage.redis.sites import Site, engine_text
from chronolet.ports.runtime.runtime import EngineIdentity

ALWAYS_TOUCH = frozenset({"pleg", "pod", "prober", "devices", "qos", "container_gc", "image_gc"})
MOVE = (
    "run the agent there instead; if this machine and engine replace them, stop the agent there and run"
    " `chronolet node move` here"
)


class Here(NamedTuple):
    """What was found here: the machine's id, or the problem with it; the engine, or None if none answers."""

    machine_id: str
    problem: str
    engine: EngineIdentity | None

    @property
    def site(self) -> Site | None:
        """What was found, as a site; None if the machine's id or the engine is unknown."""
        if not self.machine_id or self.engine is None:
            return None
        return Site(machine_id=self.machine_id, engine_id=self.engine.id, engine_root=self.engine.root)


class Verdict(NamedTuple):
    """Whether kinds that touch the node may be hosted here. `reason`: why they are refused, in one line."""

    word: Literal["allowed", "refused", "unrecorded"]
    reason: str = ""


def judge(node: str, here: Here, recorded: Site | None) -> Verdict:
    """Compare what was found here with the recorded site."""
    if here.problem:
        return Verdict("refused", here.problem)
    if recorded is None:
        return Verdict("unrecorded")
    if here.machine_id != recorded.machine_id:
        return Verdict("refused", f"node {node} lives on {recorded}; found machine {here.machine_id}: {MOVE}")
    if here.engine is None or _is(here.engine, recorded):
        return Verdict("allowed")
    found = engine_text(here.engine.id, here.engine.root)
    return Verdict(
        "refused", f"node {node} lives on {recorded}; found {found} on that machine: start the former engine, or {MOVE}"
    )


def touching(actors: Collection[str], *, manifest_path: str, archive: str = "") -> frozenset[str]:
    """Return the kinds in `actors` that touch the node's machine or engine.

    `manifests` reads a folder of the machine, or keeps Secrets for the `pod` actors of its own process. `keeper` writes
    the archive into a folder of the machine, unless `archive` names another storage, which is not tied to the machine.
    """
    found = set(actors) & (ALWAYS_TOUCH if archive else ALWAYS_TOUCH | {"keeper"})
    if "manifests" in actors and (manifest_path or "pod" in actors):
        found.add("manifests")
    return frozenset(found)


def _is(engine: EngineIdentity, site: Site) -> bool:
    return (engine.id, engine.root) == (site.engine_id, site.engine_root)
