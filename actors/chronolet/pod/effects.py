"""The workers of a pod's effects, with their time-outs and concurrency limits: a pod's only code with side effects.

Input: the effects of `wanted`. Output: calls to the runtime and to the host's disk; the results in `signals`. Next:
`decider`. Source: pkg/kubelet/kuberuntime, pkg/kubelet/lifecycle.

Every worker is idempotent: it may be killed at any line and run again, and first looks for its own earlier work, by
name and labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from chronolet.kernel.effects.pace import Pace
from chronolet.kernel.kind import Effect, Job
from chronolet.pod import signals, wanted
from chronolet.pod.workers.containers import UNKNOWN_EXIT, ContainerWorker, exit_reason
from chronolet.pod.workers.dependencies import PodDependencies
from chronolet.pod.workers.exits import ExitWorker
from chronolet.pod.workers.hooks import HookWorker
from chronolet.pod.workers.images import ensure
from chronolet.pod.workers.lookup import FindWorker
from chronolet.pod.workers.sandboxes import SandboxWorker
from chronolet.pod.workers.spec_files import record_end_first
from chronolet.pod.workers.stops.order import StopOrder
from chronolet_schemas.envelope import Signal

__all__ = ["UNKNOWN_EXIT", "PodDependencies", "exit_reason", "jobs"]

_START_SECONDS = 300.0
_STOP_SECONDS = 60.0  # on top of the grace period
_REMOVE_SECONDS = 300.0
_READ_SECONDS = 60.0
_HOOK_SECONDS = 30 * 24 * 3600.0
"""Effectively no time-out: the pod's decider ends a hook by withdrawing the effect."""


class StartLimits(NamedTuple):
    """Concurrency limits for starts, across all pods; None: the same limit as for other effects."""

    sandboxes: int | Pace | None = None
    creations: int | Pace | None = None
    starts: int | Pace | None = None


_DEFAULT_LIMITS = StartLimits()


def jobs(deps: PodDependencies, start_limits: StartLimits = _DEFAULT_LIMITS) -> Mapping[type[Effect], Job]:
    """Return the workers of a pod's effects, all one-shot. An effect whose duration the pod controls has a separate
    lane (queue) for each pod, so that no other pod waits for it. Starts have lanes too, so that many of them do not
    starve the engine and running containers: one for sandboxes, one for creating containers, one for starting them. A
    pod that has a sandbox never waits for another pod's sandbox.
    """
    sandboxes, containers = SandboxWorker(deps), ContainerWorker(deps)
    hooks, exits, finding = HookWorker(deps), ExitWorker(deps), FindWorker(deps)
    order = StopOrder()
    plain: dict[type[Effect], Job] = {
        wanted.StartSandbox: Job(
            sandboxes.start, _START_SECONDS, _lane("sandbox"), start_limits.sandboxes, _oldest_pod, _sandbox_up
        ),
        wanted.KeepSpec: Job(sandboxes.keep_spec),
        wanted.StopSandbox: Job(order.sandboxes(sandboxes.stop), _stop_seconds, lane=_pods_own("stop")),
        wanted.EnsureImage: ensure.job(deps.runtime, deps.pulls, deps.spans),
        wanted.CreateContainer: Job(
            containers.create, _START_SECONDS, _lane("create"), start_limits.creations, _oldest_pod, _created
        ),
        wanted.StartContainer: Job(
            containers.start, _START_SECONDS, _lane("start"), start_limits.starts, _oldest_pod, _container_up
        ),
        wanted.FindSandbox: Job(finding.sandbox, _READ_SECONDS),
        wanted.FindContainer: Job(finding.container, _READ_SECONDS),
        wanted.DiscardContainer: Job(finding.discard, _REMOVE_SECONDS),
        wanted.StopContainer: Job(order.containers(containers.stop), _stop_seconds, lane=_pods_own("stop")),
        wanted.PrepareHook: Job(hooks.prepare, _START_SECONDS),
        wanted.RunHook: Job(hooks.run, _HOOK_SECONDS, lane=_pods_own("hook")),
        wanted.ReadExit: Job(exits.read, _READ_SECONDS),
        wanted.Cleanup: Job(order.cleanups(sandboxes.cleanup), _REMOVE_SECONDS, _lane("cleanup")),
    }
    return {effect: replace(job, run=record_end_first(deps.specs, job.run)) for effect, job in plain.items()}


def _stop_seconds(effect: wanted.StopSandbox | wanted.StopContainer) -> float:
    return effect.grace_period_seconds + _STOP_SECONDS


def _oldest_pod(effect: wanted.StartSandbox | wanted.ContainerEffect) -> tuple[int, str]:
    return effect.begun_at, effect.pod


def _sandbox_up(_effect: wanted.StartSandbox, answer: Signal) -> str:
    return "sandbox" if isinstance(answer, signals.SandboxUp) else ""


def _created(_effect: wanted.CreateContainer, answer: Signal) -> str:
    return "creation" if isinstance(answer, signals.ContainerMade) else ""


def _container_up(effect: wanted.StartContainer, answer: Signal) -> str:
    """Return the name under which a start is measured. Starts of containers created ahead have a separate name: they
    are faster.
    """
    name = "container created ahead" if effect.made_id else "container"
    return name if isinstance(answer, signals.ContainerUp) else ""


def _lane(name: str) -> Callable[[wanted.PodEffect], str]:
    """Return a function that assigns all pods to one lane."""
    return lambda _: name


def _pods_own(name: str) -> Callable[[wanted.PodEffect], str]:
    return lambda effect: f"{name} {effect.pod}"
