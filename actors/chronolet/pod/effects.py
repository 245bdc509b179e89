"""The only way out of a pod: which worker runs which effect, for how long, and beside whom.

Comes in: the effects of `wanted`. Goes out: calls to the runtime and to the host's disk; the answers of `signals`.
Next: `decider`. Answers to: pkg/kubelet/kuberuntime, pkg/kubelet/lifecycle.

Every worker may be killed at any line and run again: it looks for its own earlier work by name and labels first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from chronolet.kernel.kind import Effect, Job
from chronolet.pod import images, wanted
from chronolet.pod.containers import UNKNOWN_EXIT, ContainerWorker, exit_reason
from chronolet.pod.exits import ExitWorker
from chronolet.pod.finding import FindWorker
from chronolet.pod.hooks import HookWorker
from chronolet.pod.keeping import keeping_the_end
from chronolet.pod.outside import Outside
from chronolet.pod.sandboxes import SandboxWorker

__all__ = ["UNKNOWN_EXIT", "Outside", "exit_reason", "jobs"]

_START_SECONDS = 300.0
_STOP_SECONDS = 60.0  # beside the grace
_REMOVE_SECONDS = 300.0
_READ_SECONDS = 60.0
_HOOK_SECONDS = 30 * 24 * 3600.0
"""A hook has no time-out of its own: it is the pod that gives it up."""


def jobs(outside: Outside, starts_at_once: int | None = None) -> Mapping[type[Effect], Job]:
    """The workers of a pod's effects, all one-shot. What may last as long as a pod likes has a lane of its own, so that
    no other pod waits for it. So have the starts of sandboxes and containers: of all pods at most `starts_at_once` are
    under way, so that many restarts at once do not starve the engine and what runs already.
    """
    sandboxes, containers = SandboxWorker(outside), ContainerWorker(outside)
    hooks, exits, finding = HookWorker(outside), ExitWorker(outside), FindWorker(outside)
    plain: dict[type[Effect], Job] = {
        wanted.StartSandbox: Job(sandboxes.start, _START_SECONDS, _starts, starts_at_once),
        wanted.KeepSpec: Job(sandboxes.keep_spec),
        wanted.StopSandbox: Job(sandboxes.stop, _stop_seconds, lane=_lane("stop")),
        wanted.EnsureImage: images.job(outside.runtime, outside.pulls),
        wanted.StartContainer: Job(containers.start, _START_SECONDS, _starts, starts_at_once),
        wanted.FindSandbox: Job(finding.sandbox, _READ_SECONDS),
        wanted.FindContainer: Job(finding.container, _READ_SECONDS),
        wanted.StopContainer: Job(containers.stop, _stop_seconds, lane=_lane("stop")),
        wanted.PrepareHook: Job(hooks.prepare, _START_SECONDS),
        wanted.RunHook: Job(hooks.run, _HOOK_SECONDS, lane=_lane("hook")),
        wanted.ReadExit: Job(exits.read, _READ_SECONDS),
        wanted.Cleanup: Job(sandboxes.cleanup, _REMOVE_SECONDS),
    }
    return {effect: replace(job, run=keeping_the_end(outside.specs, job.run)) for effect, job in plain.items()}


def _stop_seconds(effect: wanted.StopSandbox | wanted.StopContainer) -> float:
    return effect.grace_period_seconds + _STOP_SECONDS


def _starts(_effect: wanted.StartSandbox | wanted.StartContainer) -> str:
    """One lane for all pods."""
    return "start"


def _lane(what: str) -> Callable[[wanted.PodEffect], str]:
    return lambda effect: f"{what} {effect.pod}"
