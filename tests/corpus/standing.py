"""Whether a container stands as somebody says.

Input: a v1 ContainerStatus as plain data, a `Says`. Output: yes or no.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.corpus.expected import RESTARTED, RUNS, Says


def stands_as(status: Mapping[str, Any], said: Says) -> bool:
    """By the state's reason and message, and the exit code of the run that ended."""
    state = status.get("state", {})
    if said == RUNS:
        return "running" in state and status["restartCount"] == 0
    if said == RESTARTED:
        return "running" in state or state.get("waiting", {}).get("reason") == "CrashLoopBackOff"
    part = state.get("waiting") or state.get("terminated") or {}
    ended = state.get("terminated") or status.get("lastState", {}).get("terminated") or {}
    if said.exit_code is not None and ended.get("exitCode") != said.exit_code:
        return False
    return bool(
        part.get("reason") == said.reason and said.message in f"{part.get('message', '')} {ended.get('message')}"
    )
