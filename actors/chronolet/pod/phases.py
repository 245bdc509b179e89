"""The phases of a container and of a sandbox, and the transitions between them.

Input: a state and an event that the decider is about to emit. Output: nothing, or `ImpossibleTransition`. Next:
`decider`, which checks each of its events here before it emits it. Outdated results are ignored before they get here.

    container       event                          to
    -               SpecAccepted                   waiting
    waiting         ImageEnsureRequested           pulling
    pulling         ImageEnsureRequested           pulling          the image was changed
    pulling         ImageReady                     image_ready
    pulling         ImageFailed                    image_failed     ErrImagePull, ErrImageNeverPull, ...
    image_failed    ImageBackOffBegan              image_back_off   ImagePullBackOff, after ErrImagePull
    image_failed    ImageEnsureRequested           pulling          the image was changed, or no pull was attempted
    image_back_off  BackOffContinued               image_back_off
    image_back_off  ImageEnsureRequested           pulling
    image_ready     ContainerCreateRequested       image_ready      while its sandbox starts
    image_ready     ContainerStartRequested        starting
    image_ready     ImageEnsureRequested           pulling          the image was changed
    starting        ContainerStarted               running
    starting        ContainerStartFailed           start_failed     nothing was created: the attempt is retried
    starting        ContainerStartFailed           exited           it was created: the attempt has ended
    start_failed    ImageEnsureRequested           pulling
    running         ContainerStopRequested         stopping
    running         ContainerExited                exited
    running         HookRequested                  running          postStart
    running         HookPrepared, HookEnded        running          postStart
    running         ProbingRequested               running
    running         ProbingSkipped                 running
    running         ContainerProbed                running
    stopping        ContainerStopRequested         stopping         after a refusal, or with an earlier deadline
    stopping        ContainerStopReleased          stopping         its hook has ended and its turn has come
    stopping        ContainerStopFailed            stopping
    stopping        ContainerProcessEnded          stopping         while its pod ends: the sandbox may stop
    stopping        ContainerCreateRequested       stopping         the next attempt, for an immediate restart
    stopping        HookRequested                  stopping         preStop
    stopping        HookPrepared, HookEnded        stopping         preStop
    stopping        ContainerProbed                stopping
    stopping        ContainerExited                exited
    exited          RestartScheduled               backing_off      CrashLoopBackOff unless it restarts immediately
    exited          ContainerStarted               running          something else started the same container again
    backing_off     ContainerStarted               running          likewise
    backing_off     RestartScheduled               backing_off      its definition changed: immediate restart
    backing_off     BackOffContinued               backing_off
    backing_off     ImageEnsureRequested           pulling

    sandbox         event                          to
    absent          SandboxStartRequested          starting
    starting        SandboxCreated                 starting
    starting        SandboxStarted                 running
    starting        SandboxStartFailed             failed
    failed          SandboxStartRequested          starting
    running         SandboxStopRequested           stopping
    running         SandboxExited                  dead
    stopping        SandboxStopRequested           stopping         after a refusal
    stopping        SandboxStopFailed              stopping
    stopping        SandboxExited                  dead
    dead            SandboxStartRequested          starting         the next attempt
"""

from __future__ import annotations

from chronolet.pod.state import ContainerPhase, SandboxPhase, State
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event

CONTAINER: dict[type[Event], frozenset[ContainerPhase]] = {
    pod.ImageEnsureRequested: frozenset(
        (
            "waiting",
            "pulling",
            "image_failed",
            "image_back_off",
            "image_ready",
            "start_failed",
            "backing_off",
        )
    ),
    pod.ImageReady: frozenset(("pulling",)),
    pod.ImageFailed: frozenset(("pulling",)),
    pod.ImageBackOffBegan: frozenset(("image_failed",)),
    pod.ContainerCreateRequested: frozenset(("image_ready", "stopping")),
    pod.ContainerStartRequested: frozenset(("image_ready",)),
    pod.ContainerStarted: frozenset(("starting", "exited", "backing_off")),
    pod.ContainerStartFailed: frozenset(("starting",)),
    pod.ContainerStopRequested: frozenset(("running", "stopping")),
    pod.ContainerStopReleased: frozenset(("stopping",)),
    pod.ContainerStopFailed: frozenset(("stopping",)),
    pod.ContainerProcessEnded: frozenset(("stopping",)),
    pod.HookRequested: frozenset(("running", "stopping")),
    pod.HookPrepared: frozenset(("running", "stopping")),
    pod.HookEnded: frozenset(("running", "stopping")),
    pod.ContainerExited: frozenset(("running", "stopping")),
    pod.ProbingRequested: frozenset(("running",)),
    pod.ProbingSkipped: frozenset(("running",)),
    pod.ContainerProbed: frozenset(("running", "stopping")),
    pod.RestartScheduled: frozenset(("exited", "backing_off")),
    pod.BackOffContinued: frozenset(("backing_off", "image_back_off")),
}
"""The phases of a container in which each event is possible."""

SANDBOX: dict[type[Event], frozenset[SandboxPhase]] = {
    pod.SandboxStartRequested: frozenset(("absent", "failed", "dead")),
    pod.SandboxCreated: frozenset(("starting",)),
    pod.SandboxStarted: frozenset(("starting",)),
    pod.SandboxStartFailed: frozenset(("starting",)),
    pod.SandboxStopRequested: frozenset(("running", "stopping")),
    pod.SandboxStopFailed: frozenset(("stopping",)),
    pod.SandboxExited: frozenset(("running", "stopping")),
}
"""The phases of the sandbox in which each event is possible."""


class ImpossibleTransition(Exception):  # noqa: N818 - the table above calls this a transition, not an error
    """The decider was about to emit an event that its transition table does not allow."""


def check(state: State, event: Event) -> None:
    """Raise ImpossibleTransition unless the event is possible in the phase of its container or sandbox."""
    match event:
        case pod.SandboxEvent():
            _refuse_unless(state, event, state.sandbox.phase, SANDBOX.get(type(event)))
        case pod.ContainerStopRequested() | pod.ContainerStopFailed() | pod.ContainerExited() if state.stray(event.id):
            return
        case pod.ContainerEvent():
            one = state.container(event.container)
            phase = one.phase if one else "not in the spec"
            _refuse_unless(state, event, phase, CONTAINER.get(type(event)))
        case _:
            return


def _refuse_unless(state: State, event: Event, phase: str, allowed: frozenset[str] | None) -> None:
    # Events without a row (ContainerBlocked, the removal of dead containers) do not change the phase.
    if allowed is not None and phase not in allowed:
        raise ImpossibleTransition(
            f"pod {state.pod} ({state.uid}): {event!r} needs phase {' or '.join(sorted(allowed))}, found {phase}"
        )
