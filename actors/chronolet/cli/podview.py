"""Pods as the Kubernetes API has them, made of the pods' states.

Comes in: a `Moment`. Goes out: v1 Pods with status, as plain data, ordered by namespace and name. Next: `get`,
`describe`, `logs`.
"""

from __future__ import annotations

from typing import Any

from chronolet.cli import ages
from chronolet.cli.errors import Failure
from chronolet.history.state import Moment
from chronolet.pod.state import State
from chronolet.pod.status import plain_status
from chronolet_schemas import podspec

Object = dict[str, Any]


def api_pods(moment: Moment, node: str) -> list[Object]:
    """All pods of the moment."""
    states = moment.states["pod"]
    return [_api_pod(states[key], node, moment) for key in sorted(states) if states[key].uid]


def api_pod(moment: Moment, node: str, namespace: str, name: str) -> Object:
    """One pod; a Failure if there is none."""
    state = moment.states["pod"].get(f"{namespace}/{name}")
    if state is None or not state.uid:
        raise Failure(f'pod "{name}" not found in namespace "{namespace}"')
    return _api_pod(state, node, moment)


def _api_pod(state: State, node: str, moment: Moment) -> Object:
    plain = podspec.to_plain(state.manifest)
    metadata = {
        **plain.get("metadata", {}),
        "uid": state.uid,
        "creationTimestamp": ages.rfc3339(state.accepted_at),
        "resourceVersion": str(moment.position),
    }
    if state.termination:
        metadata["deletionTimestamp"] = ages.rfc3339(state.termination.deadline)
        metadata["deletionGracePeriodSeconds"] = state.termination.grace_period_seconds
    return {**plain, "metadata": metadata, "spec": {**plain["spec"], "nodeName": node}, "status": plain_status(state)}
