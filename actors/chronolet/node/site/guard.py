"""Keeps a process from touching a node that lives on another machine or engine.

Input: the machine's id, the engine's identity, the recorded site. Output: the kinds that this process must not host
now, for the kernel; a permit for each call to the engine; the reason, for /readyz and `get actors`. A process that
hosts `pleg` records the site of a log that has none. Next: `node.composition`.

    unknown -> allowed | refused | unrecorded     the first check, before the process acquires a shard
    unrecorded -> allowed | refused               recorded here, or by another process
    allowed <-> refused                           each check: every few seconds, and when the engine changes

The permit is stricter than the verdict: the identity of the engine that answers is checked before each call, and again
before a container counts as gone. So a container is never reported as dead because another engine does not know it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import structlog

from chronolet.adapters.machine.machine_id import MachineIdUnknown
from chronolet.kernel.storage.redis.sites import Recorded, RedisSites, Refused, Site
from chronolet.kernel.storage.store import HistoryMissing, StoreBroken, StoreUnreachable
from chronolet.node.site.judgement import Here, Verdict, judge
from chronolet.ports.runtime.runtime import EngineIdentity, Refusal

PERIOD_SECONDS = 2.0
_SOON_SECONDS = 0.5
"""Minimum interval between checks caused by refused calls to the same engine."""
_OBJECTION_SECONDS = 10.0
"""How long an objection stands before it is re-examined. Each examination folds part of the log."""

log = structlog.get_logger("chronolet.node")


class Sources(NamedTuple):
    """What a guard reads. `machine_id` raises MachineIdUnknown, `engine` raises `Refusal`.

    `stranger` returns why this engine cannot be the node's, judged by the containers in the log; empty if it can. It
    may raise `Refusal` and the store's errors. It is None in a process that does not host `pleg`: such a process
    records no site.
    """

    sites: RedisSites
    machine_id: Callable[[], str]
    engine: Callable[[], EngineIdentity]
    stranger: Callable[[], str] | None
    process: Callable[[], str]
    """Returns this process's id."""


class _Checked(NamedTuple):
    run: str
    verdict: Verdict
    site: Site | None
    engine: EngineIdentity | None = None
    """The engine that answered at the check; None if none did."""


class _Objection(NamedTuple):
    """Why this process may not record `engine` as the node's: `text`, found at the time `at` of the monotonic clock."""

    engine: EngineIdentity | None
    at: float
    text: str


_NEVER = _Checked("", Verdict("refused", "the node's log has not been read yet"), None)


class SiteGuard:
    """The guard of one process. Thread-safe."""

    def __init__(
        self, node: str, touching: frozenset[str], sources: Sources, *, period_seconds: float = PERIOD_SECONDS
    ) -> None:
        self._node = node
        self._touching = touching
        self._sources = sources
        self._period = period_seconds
        self._checking = threading.Lock()
        self._checked = _NEVER
        self._checked_at = float("-inf")
        self._lives_elsewhere = False
        """Whether the site last read differs from this process's. Remembered even if the log is lost."""
        self._objected = _Objection(None, float("-inf"), "")
        self._published: str | None = None
        """The reason that is published; empty if none is, None if a former process of this name may have left one."""
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._logged = ""

    # -- for the kernel --------------------------------------------------------------------------------------------
    def refuses(self, run: str) -> Mapping[str, str]:
        """Return the kinds that this process must not host now, each with the reason. Runs a check only if `run` is
        new; otherwise returns the result of the last one. Raises StoreUnreachable.
        """
        if not self._touching:
            return {}
        if self._checked.run != run:
            self._check(run)
            self._begin()
        reason = self.reason()
        return dict.fromkeys(self._touching, reason) if reason else {}

    # -- for calls to the engine -----------------------------------------------------------------------------------
    def permit(self) -> None:
        """Return if the engine that answers now is the node's, else raise `Refusal`."""
        if not self._touching:
            return
        identity = self._sources.engine()
        if self._permits(identity):
            return
        if identity != self._checked.engine or time.monotonic() - self._checked_at >= _SOON_SECONDS:
            try:
                self._check()
            except StoreUnreachable as error:
                raise Refusal("unavailable", f"the node's engine is unknown: {error}") from error
            if self._permits(identity):
                return
        raise Refusal("unavailable", self.reason() or "the node's engine has not been recorded yet")

    def _permits(self, identity: EngineIdentity) -> bool:
        checked = self._checked
        if checked.verdict.word == "unrecorded":
            # The log of an older release has no site. Until a process with pleg records one, the calls of processes
            # without pleg are permitted.
            return self._sources.stranger is None
        site = checked.site
        found = (identity.id, identity.root)
        return checked.verdict.word == "allowed" and site is not None and (site.engine_id, site.engine_root) == found

    # -- for people ------------------------------------------------------------------------------------------------
    def reason(self) -> str:
        """Return why kinds are refused here; empty if none is refused, or before the first check."""
        checked = self._checked
        return checked.verdict.reason if checked is not _NEVER and checked.verdict.word == "refused" else ""

    def remark(self) -> str:
        """Return the recorded site as text for /readyz."""
        site = self._checked.site
        return str(site) if site is not None else "not recorded yet"

    def stop(self) -> None:
        """Stop checking, and withdraw the published refusal."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self._published:
            self._publish("")
        self._sources.sites.close()

    # -- checking --------------------------------------------------------------------------------------------------
    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._repeat, name="site", daemon=True)
            self._thread.start()

    def _repeat(self) -> None:
        while not self._stopping.wait(self._period):
            try:
                self._check()
            except StoreUnreachable as error:
                log.debug("the recorded site cannot be read", error=str(error))
            except Exception:
                # The thread must go on: only its checks find out that the node was moved.
                log.exception("the check of the node's site failed, retrying")

    def _check(self, run: str = "") -> None:
        """Read all sources once and replace the verdict. Keeps the last verdict and raises StoreUnreachable if the
        store is unreachable. `run`: the log's run, if the caller knows it.
        """
        with self._checking:
            here = self._here()
            try:
                recorded, verdict = self._judged(here)
            except StoreBroken as error:
                recorded, verdict = Recorded(run or self._checked.run, None), Verdict("refused", str(error))
            self._checked = _Checked(recorded.run, verdict, recorded.site, here.engine)
            self._checked_at = time.monotonic()
            if recorded.site is not None and not here.problem:
                self._lives_elsewhere = verdict.word == "refused"
            self._report(verdict.reason)

    def _judged(self, here: Here) -> tuple[Recorded, Verdict]:
        recorded = self._sources.sites.recorded()
        verdict = judge(self._node, here, recorded.site)
        if verdict.word != "unrecorded" or self._sources.stranger is None or here.site is None or not recorded.run:
            return recorded, verdict
        if refusal := self._objection(here):
            return recorded, Verdict("refused", refusal)
        if self._sources.sites.record(recorded.run, None, here.site, f"process/{self._sources.process()}"):
            log.info("the node's site is recorded", node=self._node, site=str(here.site))
        recorded = self._sources.sites.recorded()  # another process may have been faster
        return recorded, judge(self._node, here, recorded.site)

    def _here(self) -> Here:
        try:
            machine_id, problem = self._sources.machine_id(), ""
        except MachineIdUnknown as unknown:
            machine_id, problem = "", str(unknown)
        try:
            return Here(machine_id, problem, self._sources.engine())
        except Refusal:
            return Here(machine_id, problem, None)  # pleg reports the engine's outage

    def _objection(self, here: Here) -> str:
        """Return why this process may not record its site; empty if it may."""
        if self._lives_elsewhere:
            # The log was lost. The node's own agent must record its site, not a process on another machine.
            return (
                f"this process was refused for node {self._node} before, and the node's new log names no site yet:"
                " start the agent on the node's machine; if this is the node's machine now, restart this process"
            )
        known = self._objected
        if not known.text or known.engine != here.engine or time.monotonic() - known.at >= _OBJECTION_SECONDS:
            known = self._objected = _Objection(here.engine, time.monotonic(), self._stranger())
        return known.text

    def _stranger(self) -> str:
        assert self._sources.stranger is not None  # noqa: S101 - checked by the caller
        try:
            return self._sources.stranger()
        except (Refusal, HistoryMissing) as error:
            return f"cannot tell whether node {self._node} lives here: {error}"

    def _report(self, reason: str) -> None:
        """Log and publish `reason` if it has changed; empty if nothing is refused."""
        if reason != self._logged:
            self._logged = reason
            if reason:
                log.error("this process must not touch the node", kinds=sorted(self._touching), reason=reason)
            else:
                log.info("this process may touch the node", site=self.remark())
        if reason != self._published:
            self._publish(reason)

    def _publish(self, reason: str) -> None:
        refused = Refused(kinds=tuple(sorted(self._touching)), reason=reason) if reason else None
        try:
            self._sources.sites.refuse(self._sources.process(), refused)
        except (StoreUnreachable, StoreBroken) as error:
            log.debug("refusal not published, the next check retries", error=str(error))  # informational only
        else:
            self._published = reason
