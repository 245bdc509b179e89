"""Judges by the containers of an engine whether it can be the node's engine, if the log names no site.

Input: the containers in the log, the engine's listing. Output: the reason why it cannot be the node's; empty if it can.
Next: `guard`, and `chronolet node move`, which reports which pods will be started again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from chronolet.history.entries import ArchiveReader
from chronolet.history.state import state_at
from chronolet.kernel.storage.store import Store
from chronolet.node.site.judgement import MOVE
from chronolet.pleg import actor as pleg
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import Runtime


def known(states: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Return the ids of the containers that exist according to pleg's state."""
    state = states["pleg"].get(pleg.NODE)
    return frozenset(state.containers) if state is not None else frozenset()


def present(runtime: Runtime, node: str) -> frozenset[str]:
    """Return the ids of the node's containers in the engine. Raises `Refusal`."""
    return frozenset(one.id for one in runtime.list(labels.of_node(node)))


def stranger(node: str, store: Store, archive: ArchiveReader, runtime: Runtime) -> str:
    """Return why the engine cannot be the node's; empty if it can. Raises `Refusal`, HistoryMissing and the store's
    errors.
    """
    wanted = known(state_at(store, archive, (pleg.kind(),)).states)
    return objection(node, wanted, present(runtime, node)) if wanted else ""


def objection(node: str, wanted: Collection[str], found: Collection[str]) -> str:
    """Return why an engine with the containers `found` cannot belong to a log with the containers `wanted`; empty if it
    can.
    """
    if not wanted or set(wanted) & set(found):
        return ""
    return (
        f"the log of node {node} names {len(wanted)} containers, and this engine has none of them: the node seems to"
        f" live on another machine or engine; {MOVE}"
    )
