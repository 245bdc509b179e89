"""The only way out of qos: what the machine is, and its cgroups brought into the state that is wanted.

Comes in: `wanted.LookAtNode`, `wanted.KeepTree`. Goes out: reads and writes of cgroups, one fence before each write;
`signals`. Next: `decider`. Answers to pkg/kubelet/cm (container_manager_linux.go, pod_container_manager_linux.go).

A worker may be killed at any line: the next one sees what differs from what is wanted and goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from chronolet.kernel.kind import Effect, EffectContext, Job
from chronolet.ports.machine.cgroups import CgroupRefusal, Cgroups, CgroupTree, Step
from chronolet.ports.machine.host import Host
from chronolet.ports.machine.kernel_log import Kills, NoKills
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import Engine, Refusal, Runtime
from chronolet.qos import signals, wanted
from chronolet.qos.sharing import NO_SYSTEM, Means, Sharing, described
from chronolet.qos.tree import bearable
from chronolet.rules.resources.cgroups import Cgroup, Path, Values, uid_of
from chronolet.rules.resources.qos_class import least_oom_score_adj
from chronolet_schemas.qos import Amounts, Change, Driver, System

log = structlog.get_logger("chronolet.qos")

Operation = Literal["create", "update", "destroy"]
Observe = Callable[[Operation, float], None]

_LOOK_SECONDS = 300.0
_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 1.0, 60.0
_PATIENCE_SECONDS = 5.0
"""How long who was killed may take to be gone."""
_MEMORY_LIMITS = ("memory.limit_in_bytes", "memory.max")


def machine(host: Host, tree: CgroupTree | None = None) -> Amounts:
    """What the machine has."""
    pids = [int(host.file(f"/proc/sys/kernel/{name}") or 0) for name in ("pid_max", "threads-max")]
    return Amounts(
        cpu_milli=host.cpu_milli(),
        memory_bytes=host.memory_bytes(),
        pids=min((one for one in pids if one), default=0),
        huge_pages=dict(tree.page_sizes()) if tree is not None else {},
    )


class Outside(Struct, frozen=True):
    """What the workers need."""

    sharing: Sharing
    cgroups: Cgroups
    runtime: Runtime
    host: Host
    kills: Kills = field(default_factory=NoKills)
    observe: Observe = field(default=lambda _operation, _seconds: None)
    told: Callable[[int], None] = field(default=lambda _version: None)
    """Is told the version of cgroups, 0 for none."""
    system: Callable[[Engine], System] = field(default=lambda _engine: NO_SYSTEM)
    """What the machine is, beside this engine."""


def jobs(outside: Outside) -> Mapping[type[Effect], Job]:
    """The standing effects of the qos kind."""
    return {
        wanted.LookAtNode: Job(Looking(outside).look),
        wanted.KeepTree: Job(Keeping(outside).keep),
    }


class Looking:
    """The worker of LookAtNode."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def look(self, effect: wanted.LookAtNode, context: EffectContext) -> None:
        """Until it is no longer wanted; what the runtime does not tell now, it is asked for again soon."""
        del effect
        pause = _RETRY_SECONDS
        while not context.cancelled.is_set():
            try:
                context.fence("docker.info")
                engine = self._outside.runtime.engine()
                means = self._means(engine)
            except Refusal as refusal:
                log.warning("the runtime does not say what it is; asking again", error=str(refusal))
                context.cancelled.wait(pause)
                pause = min(pause * 2, _LONGEST_RETRY_SECONDS)
                continue
            tree = self._outside.cgroups.tree(means.driver)
            self._outside.told(means.version)
            has = machine(self._outside.host, tree)
            node = described(self._outside.sharing, has, means, self._outside.system(engine))
            context.send(signals.NodeSeen(node=node))
            pause = _RETRY_SECONDS
            context.cancelled.wait(_LOOK_SECONDS)

    def _means(self, engine: Engine) -> Means:
        """What there is to hold pods to their shares with, and what there is not."""
        outside = self._outside
        if not outside.sharing.per_qos:
            return Means(lost=("--cgroups-per-qos is false: pods have no cgroups of their own", *self._lost()))
        if why := outside.cgroups.why_not():
            return Means(lost=(f"{why}: pods have no cgroups of their own", *self._lost()))
        driver = outside.sharing.driver or _driver(engine)
        tree = outside.cgroups.tree(driver)
        if tree is None:
            said = "the container runtime makes no cgroups: limits and shares hold nobody to anything"
            return Means(lost=(said, *self._lost()))
        return Means(version=tree.version, driver=driver, lost=(*tree.lost, *self._lost()))

    def _lost(self) -> Iterator[str]:
        if least_oom_score_adj(self._outside.host.missing_capabilities()) >= 0:
            yield "without the capability SYS_RESOURCE no oom_score_adj can be below 0: 0 stands for each that is"
        if why := self._outside.kills.why_not():
            yield f"{why}: of who is killed for memory no more is known than the container runtime notices"


def _driver(engine: Engine) -> Driver:
    match engine.cgroup_driver:
        case "systemd":
            return "systemd"
        case "none":
            return ""
        case _:
            return "cgroupfs"


class Report(Struct):
    """What one pass through the tree came to."""

    restored: list[signals.Restored] = field(default_factory=list)
    removed: list[signals.Removed] = field(default_factory=list)
    failed: list[signals.Failed] = field(default_factory=list)


class Keeping:
    """The worker of KeepTree. Knows which values it has brought about: what differs from those, others did.

    A pod waits for what is new in the tree: that comes first. All else is looked at once a period, and whenever a pod
    has gone.
    """

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._kept: dict[Path, Values] = {}
        self._stuck: list[signals.Failed] = []
        """What of nobody's could not be removed, the last time."""
        self._next_look = 0.0

    def keep(self, effect: wanted.KeepTree, context: EffectContext) -> None:
        """Now, and again and again until it is no longer wanted; soon again what could not be done."""
        if self._kept.keys() - {cgroup.path for cgroup in effect.tree}:
            self._next_look = 0.0
        report = self.once(effect, context, whole=False)
        self._tell(effect, report, context)
        said, pause = report.failed, _RETRY_SECONDS
        while not context.cancelled.is_set():
            period = max(0.0, self._next_look - time.monotonic())
            if context.cancelled.wait(min(pause, period) if said else period):
                return
            self._next_look = 0.0  # for whoever comes next, should this one be cut short
            report = self.once(effect, context, whole=True)
            self._next_look = time.monotonic() + effect.period_seconds
            if report.restored or report.removed or report.failed != said:
                self._tell(effect, report, context)
            said = report.failed
            pause = min(pause * 2, _LONGEST_RETRY_SECONDS) if said else _RETRY_SECONDS

    def _tell(self, effect: wanted.KeepTree, report: Report, context: EffectContext) -> None:
        context.send(
            signals.TreeKept(
                revision=effect.revision,
                restored=tuple(report.restored),
                removed=tuple(report.removed),
                failed=tuple(report.failed),
            )
        )

    def once(self, effect: wanted.KeepTree, context: EffectContext, *, whole: bool) -> Report:
        """One way through the tree, or through what is new in it."""
        report = Report()
        tree = self._outside.cgroups.tree(effect.driver)
        if tree is None:
            why = self._outside.cgroups.why_not()
            report.failed.append(signals.Failed(path=effect.root, error=why))
            return report
        try:
            tree.claim(effect.root, self._outside.sharing.name)
        except CgroupRefusal as refusal:
            report.failed.append(signals.Failed(path=effect.root, error=str(refusal)))
            return report
        for cgroup in effect.tree:
            if whole or self._kept.get(cgroup.path) != cgroup.values:
                self._bring(tree, cgroup, effect, context, report)
        if whole:
            self._stuck = []
            self._clear(tree, effect, context, report)
        report.failed += self._stuck
        return report

    # -- as it should be ---------------------------------------------------------------------------------------------

    def _bring(
        self, tree: CgroupTree, cgroup: Cgroup, effect: wanted.KeepTree, context: EffectContext, report: Report
    ) -> None:
        steps = tree.missing(cgroup)
        if steps:
            by_hand = cgroup.path in effect.settled or self._kept.get(cgroup.path) == cgroup.values
            is_new = not steps[0].file
            with self._timed("create" if is_new else "update"):
                try:
                    lesser = [step for step in steps if not self._taken(tree, step, context)]
                except CgroupRefusal as refusal:
                    self._kept.pop(cgroup.path, None)
                    if cgroup.is_containers and not tree.missing(cgroup):
                        return  # it has ended meanwhile
                    report.failed.append(signals.Failed(path=cgroup.path, error=str(refusal)))
                    return
            if lesser:
                self._kept.pop(cgroup.path, None)
                return
            if by_hand:
                report.restored.append(signals.Restored(path=cgroup.path, changes=_changes(steps)))
        self._kept[cgroup.path] = cgroup.values

    def _taken(self, tree: CgroupTree, step: Step, context: EffectContext) -> bool:
        """False if something less than what was wanted had to do."""
        point = "cgroup.write" if step.file else "cgroup.make"
        context.fence(point)
        try:
            tree.take(step)
        except CgroupRefusal:
            if step.file not in _MEMORY_LIMITS or uid_of(step.path[-1]) is not None:
                raise
            # More is in use than a class is to have: it must not grow, at least.
            tree.take(replace(step, wanted=str(bearable(int(step.wanted), tree.memory_used(step.path)))))
            return False
        finally:
            context.done(point)
        return True

    # -- what is nobody's --------------------------------------------------------------------------------------------

    def _clear(self, tree: CgroupTree, effect: wanted.KeepTree, context: EffectContext, report: Report) -> None:
        mine = {cgroup.path for cgroup in effect.tree}
        for path in tree.pods(effect.root):
            if path in mine:
                continue
            self._kept.pop(path, None)
            inside = tree.processes(path)
            if inside and self._may_run(path, context):
                continue
            with self._timed("destroy"):
                try:
                    self._emptied(tree, path, context)
                except CgroupRefusal as refusal:
                    self._stuck.append(signals.Failed(path=path, error=str(refusal)))
                else:
                    report.removed.append(signals.Removed(path=path, killed=len(inside)))

    def _may_run(self, path: Path, context: EffectContext) -> bool:
        """Whether containers of that pod run: it is being adopted, or it has moved to another class."""
        context.fence("docker.list")
        try:
            found = self._outside.runtime.list(labels.of_uid(self._outside.sharing.name, uid_of(path[-1]) or ""))
        except Refusal:
            return True
        return any(one.state == "running" for one in found)

    def _emptied(self, tree: CgroupTree, path: Path, context: EffectContext) -> None:
        """Removed, after the end of whoever was in it."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            if tree.processes(path):
                context.fence("cgroup.kill")
                tree.kill(path)
                context.done("cgroup.kill")
            context.fence("cgroup.remove")
            try:
                tree.remove(path)
            except CgroupRefusal:
                # Whoever was killed takes a moment to be gone.
                if time.monotonic() > deadline:
                    raise
                context.cancelled.wait(0.02)
                continue
            finally:
                context.done("cgroup.remove")
            return

    @contextmanager
    def _timed(self, operation: Operation) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self._outside.observe(operation, time.monotonic() - began)


def _changes(steps: Sequence[Step]) -> tuple[Change, ...]:
    """A cgroup that was missing as a whole is said in one."""
    if any(not step.file for step in steps):
        return (Change(),)
    return tuple(Change(file=step.file, found=step.found, wanted=step.wanted) for step in steps)
