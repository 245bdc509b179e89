"""The workers of qos: they inspect the machine and reconcile its cgroups.

Input: `wanted.LookAtNode`, `wanted.KeepTree`. Output: reads and writes of cgroups, a fence check before each write;
`signals`. Next: `decider`. Corresponds to pkg/kubelet/cm (container_manager_linux.go, pod_container_manager_linux.go).

A worker may be killed at any line: the next one compares actual and desired cgroups and continues from there.
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

_MEMORY_LIMITS = ("memory.limit_in_bytes", "memory.max")


class Timing(Struct, frozen=True, kw_only=True):
    """Durations in seconds. A failure is retried after `retry_seconds`, twice that, and so on, up to
    `longest_retry_seconds`. `inspect_seconds`: interval between two inspections of the machine. `removal_seconds`: how
    long killed processes may take to disappear.
    """

    inspect_seconds: float = 300.0
    retry_seconds: float = 1.0
    longest_retry_seconds: float = 60.0
    removal_seconds: float = 5.0


def machine(host: Host, tree: CgroupTree | None = None) -> Amounts:
    """Return the machine's resources."""
    pids = [int(host.file(f"/proc/sys/kernel/{name}") or 0) for name in ("pid_max", "threads-max")]
    return Amounts(
        cpu_milli=host.cpu_milli(),
        memory_bytes=host.memory_bytes(),
        pids=min((one for one in pids if one), default=0),
        huge_pages=dict(tree.page_sizes()) if tree is not None else {},
    )


class QosDependencies(Struct, frozen=True):
    """Dependencies of the workers."""

    sharing: Sharing
    cgroups: Cgroups
    runtime: Runtime
    host: Host
    kills: Kills = field(default_factory=NoKills)
    observe: Observe = field(default=lambda _operation, _seconds: None)
    on_version: Callable[[int], None] = field(default=lambda _version: None)
    """Called with the cgroup version, which is 0 if there are no cgroups."""
    system: Callable[[Engine], System] = field(default=lambda _engine: NO_SYSTEM)
    """Returns the identity of the machine and of the given engine."""
    timing: Timing = Timing()


def jobs(deps: QosDependencies) -> Mapping[type[Effect], Job]:
    """Return the jobs of qos's standing effects."""
    return {
        wanted.LookAtNode: Job(NodeInspector(deps).look),
        wanted.KeepTree: Job(TreeKeeper(deps).keep),
    }


class NodeInspector:
    """The worker of LookAtNode."""

    def __init__(self, deps: QosDependencies) -> None:
        self._deps = deps

    def look(self, effect: wanted.LookAtNode, context: EffectContext) -> None:
        """Inspect the machine periodically until cancelled; if the runtime is unreachable, retry with back-off."""
        del effect
        timing = self._deps.timing
        pause = timing.retry_seconds
        while not context.cancelled.is_set():
            try:
                context.fence("docker.info")
                engine = self._deps.runtime.engine()
                means = self._means(engine)
            except Refusal as refusal:
                log.warning("cannot get the container runtime's info; retrying", error=str(refusal))
                context.cancelled.wait(pause)
                pause = min(pause * 2, timing.longest_retry_seconds)
                continue
            tree = self._deps.cgroups.tree(means.driver)
            self._deps.on_version(means.version)
            has = machine(self._deps.host, tree)
            node = described(self._deps.sharing, has, means, self._deps.system(engine))
            context.send(signals.NodeSeen(node=node))
            pause = timing.retry_seconds
            context.cancelled.wait(timing.inspect_seconds)

    def _means(self, engine: Engine) -> Means:
        """Find out by what means pods' shares are enforced, and what cannot be enforced."""
        deps = self._deps
        if not deps.sharing.per_qos:
            return Means(lost=("--cgroups-per-qos is false: pods have no cgroups of their own", *self._lost()))
        if why := deps.cgroups.why_not():
            return Means(lost=(f"{why}: pods have no cgroups of their own", *self._lost()))
        driver = deps.sharing.driver or _driver(engine)
        tree = deps.cgroups.tree(driver)
        if tree is None:
            problem = "the container runtime makes no cgroups: limits and shares are not enforced"
            return Means(lost=(problem, *self._lost()))
        return Means(version=tree.version, driver=driver, lost=(*tree.lost, *self._lost()))

    def _lost(self) -> Iterator[str]:
        if least_oom_score_adj(self._deps.host.missing_capabilities()) >= 0:
            yield "without the capability SYS_RESOURCE no oom_score_adj can be below 0: 0 replaces each negative value"
        if why := self._deps.kills.why_not():
            yield f"{why}: OOM kills are known only as far as the container runtime notices them"


def _driver(engine: Engine) -> Driver:
    match engine.cgroup_driver:
        case "systemd":
            return "systemd"
        case "none":
            return ""
        case _:
            return "cgroupfs"


class Report(Struct):
    """The result of one pass through the tree."""

    restored: list[signals.Restored] = field(default_factory=list)
    removed: list[signals.Removed] = field(default_factory=list)
    failed: list[signals.Failed] = field(default_factory=list)


class TreeKeeper:
    """The worker of KeepTree. It remembers the values that it has set: if a cgroup's actual values differ from them,
    someone else has changed them.

    New cgroups come first, because pods wait for them. Everything else is checked once per period and whenever a pod
    has been removed.
    """

    def __init__(self, deps: QosDependencies) -> None:
        self._deps = deps
        self._kept: dict[Path, Values] = {}
        self._stuck: list[signals.Failed] = []
        """Failures to remove unowned cgroups in the last full pass."""
        self._next_look = 0.0

    def keep(self, effect: wanted.KeepTree, context: EffectContext) -> None:
        """Reconcile now and once per period until cancelled; after failures, retry with back-off."""
        if self._kept.keys() - {cgroup.path for cgroup in effect.tree}:
            self._next_look = 0.0
        report = self.once(effect, context, whole=False)
        self._report(effect, report, context)
        timing = self._deps.timing
        failed, pause = report.failed, timing.retry_seconds
        while not context.cancelled.is_set():
            period = max(0.0, self._next_look - time.monotonic())
            if context.cancelled.wait(min(pause, period) if failed else period):
                return
            self._next_look = 0.0  # so that the next worker starts over if this pass is cut short
            report = self.once(effect, context, whole=True)
            self._next_look = time.monotonic() + effect.period_seconds
            if report.restored or report.removed or report.failed != failed:
                self._report(effect, report, context)
            failed = report.failed
            pause = min(pause * 2, timing.longest_retry_seconds) if failed else timing.retry_seconds

    def _report(self, effect: wanted.KeepTree, report: Report, context: EffectContext) -> None:
        context.send(
            signals.TreeKept(
                revision=effect.revision,
                restored=tuple(report.restored),
                removed=tuple(report.removed),
                failed=tuple(report.failed),
            )
        )

    def once(self, effect: wanted.KeepTree, context: EffectContext, *, whole: bool) -> Report:
        """Make one pass over the whole tree, or only over its new cgroups."""
        report = Report()
        tree = self._deps.cgroups.tree(effect.driver)
        if tree is None:
            why = self._deps.cgroups.why_not()
            report.failed.append(signals.Failed(path=effect.root, error=why))
            return report
        try:
            tree.claim(effect.root, self._deps.sharing.name)
        except CgroupRefusal as refusal:
            report.failed.append(signals.Failed(path=effect.root, error=str(refusal)))
            return report
        for cgroup in effect.tree:
            if whole or self._kept.get(cgroup.path) != cgroup.values:
                self._reconcile(tree, cgroup, effect, context, report)
        if whole:
            self._stuck = []
            self._remove_unowned(tree, effect, context, report)
        report.failed += self._stuck
        return report

    # -- desired cgroups ---------------------------------------------------------------------------------------------

    def _reconcile(
        self, tree: CgroupTree, cgroup: Cgroup, effect: wanted.KeepTree, context: EffectContext, report: Report
    ) -> None:
        steps = tree.missing(cgroup)
        if steps:
            by_hand = cgroup.path in effect.settled or self._kept.get(cgroup.path) == cgroup.values
            is_new = not steps[0].file
            with self._timed("create" if is_new else "update"):
                try:
                    lesser = [step for step in steps if not self._apply(tree, step, context)]
                except CgroupRefusal as refusal:
                    self._kept.pop(cgroup.path, None)
                    if cgroup.is_containers and not tree.missing(cgroup):
                        return  # the container has exited in the meantime
                    report.failed.append(signals.Failed(path=cgroup.path, error=str(refusal)))
                    return
            if lesser:
                self._kept.pop(cgroup.path, None)
                return
            if by_hand:
                report.restored.append(signals.Restored(path=cgroup.path, changes=_changes(steps)))
        self._kept[cgroup.path] = cgroup.values

    def _apply(self, tree: CgroupTree, step: Step, context: EffectContext) -> bool:
        """Apply one step; return False if only a fallback value could be set."""
        point = "cgroup.write" if step.file else "cgroup.make"
        context.fence(point)
        try:
            tree.take(step)
        except CgroupRefusal:
            if step.file not in _MEMORY_LIMITS or uid_of(step.path[-1]) is not None:
                raise
            # The class uses more than its desired limit: at least prevent growth.
            tree.take(replace(step, wanted=str(bearable(int(step.wanted), tree.memory_used(step.path)))))
            return False
        finally:
            context.done(point)
        return True

    # -- unowned cgroups ---------------------------------------------------------------------------------------------

    def _remove_unowned(
        self, tree: CgroupTree, effect: wanted.KeepTree, context: EffectContext, report: Report
    ) -> None:
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
                    self._remove(tree, path, context)
                except CgroupRefusal as refusal:
                    self._stuck.append(signals.Failed(path=path, error=str(refusal)))
                else:
                    report.removed.append(signals.Removed(path=path, killed=len(inside)))

    def _may_run(self, path: Path, context: EffectContext) -> bool:
        """Whether containers of the cgroup's pod may be running, because the pod is being adopted or has moved to
        another class. True if the runtime does not answer.
        """
        context.fence("docker.list")
        try:
            found = self._deps.runtime.list(labels.of_uid(self._deps.sharing.name, uid_of(path[-1]) or ""))
        except Refusal:
            return True
        return any(one.state == "running" for one in found)

    def _remove(self, tree: CgroupTree, path: Path, context: EffectContext) -> None:
        """Kill all processes in the cgroup and remove it."""
        deadline = time.monotonic() + self._deps.timing.removal_seconds
        while True:
            if tree.processes(path):
                context.fence("cgroup.kill")
                tree.kill(path)
                context.done("cgroup.kill")
            context.fence("cgroup.remove")
            try:
                tree.remove(path)
            except CgroupRefusal:
                # Killed processes take a moment to disappear.
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
            self._deps.observe(operation, time.monotonic() - began)


def _changes(steps: Sequence[Step]) -> tuple[Change, ...]:
    """List the changes; a cgroup that was missing entirely counts as one change."""
    if any(not step.file for step in steps):
        return (Change(),)
    return tuple(Change(file=step.file, found=step.found, wanted=step.wanted) for step in steps)
