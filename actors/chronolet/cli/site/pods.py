"""Describes what a move of the node does to each of its pods.

Input: the pods and containers in the log, the containers of this engine. Output: a line for each pod. Next: `command`.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet.cli.session import Session
from chronolet.node.site.containers import present
from chronolet.pleg import actor as pleg
from chronolet.pod.state import State
from chronolet.ports.runtime.runtime import Runtime


def outcomes(node: Session, runtime: Runtime) -> Iterator[str]:
    """Yield a line for each pod. Raises Refusal if the engine does not answer."""
    states = node.state("pod", "pleg").states
    watched = states["pleg"].get(pleg.NODE)
    owners = {one: run.uid for one, run in watched.containers.items()} if watched is not None else {}
    found = present(runtime, node.settings.node)
    pods: dict[str, State] = {key: state for key, state in sorted(states["pod"].items()) if state.uid}
    if not pods:
        yield "the node has no pods"
    for key, state in pods.items():
        ids = {one for one, uid in owners.items() if uid == state.uid}
        yield f"pod {key}: {_outcome(state, len(ids), len(ids & found))}{_condition(state)}"


def _condition(state: State) -> str:
    """Return the condition under which a pod from the manifest folder is not deleted: its file exists here too. Empty
    for a pod from another source, or one that is being deleted anyway.
    """
    path = state.source.removeprefix("file:")
    return "" if path == state.source or state.termination is not None else f", if {path} has it here too"


def _outcome(state: State, known: int, found: int) -> str:
    if state.termination is not None:
        return "is being deleted; its deletion is completed here"
    if state.failure is not None or not known:
        return "nothing of it runs; continues here"
    if found == known:
        return f"keeps running: its {known} containers are in this engine"
    lost = f"{known - found} of its {known} containers are not in this engine"
    if state.manifest.spec.restart_policy == "Never":
        return f"{lost}; fails, because its restartPolicy is Never"
    return f"{lost}; is started again here"
