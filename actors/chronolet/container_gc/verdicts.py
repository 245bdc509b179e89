"""What is decided over one object, and the two margins that the kubelet's rules lack. Pure.

Comes in: nothing. Goes out: `Verdict`, `Pods`. Next: `containers`, `sandboxes`, `logs` pass verdicts, `plan` puts them
together.
"""

from __future__ import annotations

from collections.abc import Container as Holds

import msgspec

from chronolet.container_gc.signals import Seen
from chronolet_schemas.container_gc import Rule, Victim, What

BEING_MADE_MS = 300_000
"""What was created not longer ago than a start may take is about to be started, not left over."""
NEWS_MS = 60_000
"""The news of a new pod may be younger than its first container. So long nothing is taken for a deleted pod's."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One object, whether it goes, and the rule that decided."""

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
        """The same as the run writes it down."""
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
    """Which pods there are, by uid. `terminated` ones are known and finished; they are given up only if so told."""

    known: Holds[str]
    terminated: Holds[str] = frozenset()
    sources_ready: bool = True
    evict_terminated: bool = False

    def given_up(self, uid: str) -> Rule | None:
        """Why nothing of this pod is kept, if so."""
        if uid not in self.known:
            return "deleted_pod"
        return "terminated_pod" if self.evict_terminated and uid in self.terminated else None


def unknown(one: Seen, now: int) -> Rule | None:
    """Why something of a pod that nobody knows is kept all the same, if so.

    A log knows every pod it ever had: a pod that it does not know is one that was deleted, or that an earlier log had.
    That one was left alone when this log began, and is so for ever.
    """
    if not one.of_this_log:
        return "left_alone"
    return "news_awaited" if now - one.created_at < NEWS_MS else None
