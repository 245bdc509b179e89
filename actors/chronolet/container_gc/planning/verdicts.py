"""The verdict on one object, and two safety margins that the kubelet's rules lack. Pure.

Input: none. Output: `Verdict`, `Pods`. Next: `containers`, `sandboxes` and `logs`, which create verdicts; `plan`, which
combines them.
"""

from __future__ import annotations

from collections.abc import Container as Holds

import msgspec

from chronolet.container_gc.signals import RuntimeObject
from chronolet_schemas.container_gc import Rule, Victim, What

BEING_MADE_MS = 300_000
"""The time that a container's creation and start may take. A younger object that was created but not started may be
about to start.
"""
NEWS_MS = 60_000
"""Minimum age at which an object may be attributed to a deleted pod. The event that announces a new pod may arrive
after the pod's first container.
"""


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict on one object: whether to remove it, and the rule that decided."""

    what: What
    id: str
    name: str
    pod: str = ""
    uid: str = ""
    remove: bool = False
    rule: Rule
    stop: bool = False
    container: str = ""
    sandbox_id: str = ""

    def victim(self) -> Victim:
        """Return the verdict in the form in which a run records it."""
        return Victim(
            what=self.what,
            id=self.id,
            name=self.name,
            pod=self.pod,
            uid=self.uid,
            rule=self.rule,
            stop=self.stop,
            container=self.container,
            sandbox_id=self.sandbox_id,
        )


class Pods(msgspec.Struct, frozen=True, kw_only=True):
    """The pods that exist. `known` contains their uids, `terminated` the uids of those that have finished. With
    `evict_terminated`, all objects of finished pods are removed.
    """

    known: Holds[str]
    terminated: Holds[str] = frozenset()
    sources_ready: bool = True
    evict_terminated: bool = False

    def given_up(self, uid: str) -> Rule | None:
        """Return why all objects of this pod are to be removed; None if they are not."""
        if uid not in self.known:
            return "deleted_pod"
        return "terminated_pod" if self.evict_terminated and uid in self.terminated else None


def unknown(one: RuntimeObject, now: int) -> Rule | None:
    """Return why an object of an unknown pod is kept; None if it may be removed.

    The log knows every pod that it has ever had, so an unknown pod either was deleted or belongs to an earlier log.
    Objects of an earlier log were left alone when this log began, and are never removed without a request.
    """
    if not one.of_this_log:
        return "left_alone"
    return "news_awaited" if now - one.created_at < NEWS_MS else None
