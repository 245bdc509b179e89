"""Results of a pod's effects, for tests with random histories."""

from __future__ import annotations

from typing import Any

from chronolet.kernel.kind import Effect
from chronolet.pod import signals, wanted


def good_answer(effect: Effect, at: int) -> signals.EffectResult:  # noqa: C901 - a table
    """Return the result of a worker that succeeds."""
    answer: signals.EffectResult
    to: dict[str, Any] = {"subject": effect.subject, "intent": effect.intent}
    match effect:
        case wanted.StartSandbox() | wanted.FindSandbox():
            answer = signals.SandboxUp(id=f"sandbox-{effect.uid}-{effect.attempt}", ip="10.1.0.2", started_at=at, **to)
        case wanted.StopSandbox():
            answer = signals.SandboxDown(id=effect.id, **to)
        case wanted.EnsureImage():
            answer = signals.ImagePresent(image_id="i", pulled=False, **to)
        case wanted.CreateContainer():
            name = f"{effect.container}-{effect.uid}-{effect.attempt}"
            answer = signals.ContainerMade(id=name, **to)
        case wanted.DiscardContainer():
            answer = signals.ContainerRefused(reason="CreateContainerError", message=wanted.OUTDATED, **to)
        case wanted.StartContainer() | wanted.FindContainer():
            answer = signals.ContainerUp(id=f"{effect.container}-{effect.uid}-{effect.attempt}", started_at=at, **to)
        case wanted.StopContainer():
            answer = signals.ContainerDead(id=effect.id, exit_code=0, reason="Completed", finished_at=at, **to)
        case wanted.KeepSpec():
            answer = signals.SpecKept(**to)
        case wanted.PrepareHook():
            answer = signals.HookPrepared(exec_id=f"exec-{effect.id}-{at}", **to)
        case wanted.RunHook():
            answer = signals.HookDone(**to)
        case wanted.ReadExit():
            answer = signals.ExitRead(message="m", **to)
        case _:
            answer = signals.CleanedUp(**to)
    return answer


def bad_answer(effect: Effect, at: int, *, made: bool) -> signals.EffectResult | None:  # noqa: PLR0911 - a table
    """Return the result of a worker that fails; None for a worker that can only raise. `made`: of two possible
    failures, choose the one in which the worker got further, such as a container that started and exited.
    """
    to: dict[str, Any] = {"subject": effect.subject, "intent": effect.intent}
    match effect:
        case wanted.StartSandbox() | wanted.FindSandbox():
            return signals.SandboxDown(id="s", **to) if made else signals.SandboxRefused(message="no", **to)
        case wanted.EnsureImage():
            return signals.ImageRefused(reason="ErrImagePull", message="no", **to)
        case wanted.StartContainer() | wanted.FindContainer() if made:
            name = f"{effect.container}-{effect.uid}-{effect.attempt}"
            return signals.ContainerDead(id=name, exit_code=1, reason="Error", started_at=at, **to)
        case wanted.CreateContainer() | wanted.DiscardContainer():
            return signals.ContainerRefused(reason="CreateContainerError", message="no", **to)
        case wanted.StartContainer() | wanted.FindContainer():
            return signals.ContainerRefused(reason="RunContainerError", message="no", id="x" * (at % 2), **to)
        case wanted.StopContainer():
            return signals.ProcessEnded(id=effect.id, **to) if made else signals.StopRefused(message="no", **to)
        case wanted.PrepareHook():
            return signals.HookRefused(message="no", **to)
        case wanted.RunHook():
            return signals.HookDone(failed=True, message="no", **to) if made else signals.HookUnfinished(**to)
        case _:
            return None
