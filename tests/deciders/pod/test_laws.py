"""Random histories: no decision fails, every wait leads to a step, and every termination completes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as with_data
from hypothesis import settings
from hypothesis import strategies as st

from chronolet.kernel.kind import Due
from chronolet.pod import decider, signals, wanted
from chronolet.pod.status.status import plain_status
from chronolet_schemas import pleg, prober
from chronolet_schemas.podspec import (
    Container,
    EphemeralContainer,
    ExecAction,
    Lifecycle,
    LifecycleHandler,
    Pod,
    Probe,
    SleepAction,
)
from tests.deciders.pod.answering import bad_answer, good_answer
from tests.deciders.pod.life import POD, RAW, Life, container, manifest, running
from tests.deciders.pod.watch import Watched

EXEC = LifecycleHandler(exec=ExecAction(command=("x",)))
SLEEP = LifecycleHandler(sleep=SleepAction(seconds=5))


def hooked(name: str, after: LifecycleHandler, before: LifecycleHandler | None, **fields: Any) -> Container:
    return container(name, lifecycle=Lifecycle(post_start=after, pre_stop=before), **fields)


HOOKED = manifest(hooked("app", EXEC, EXEC), hooked("log", SLEEP, SLEEP), termination_grace_period_seconds=8)
ORDERED = manifest(
    hooked("app", EXEC, None),
    init_containers=(
        hooked("log", SLEEP, EXEC, restart_policy="Always"),
        container("debug", restart_policy="Always"),
    ),
)
PROBE = Probe(exec=ExecAction(command=("x",)), termination_grace_period_seconds=3)
PROBED = manifest(
    container("app", liveness_probe=PROBE, readiness_probe=Probe(exec=PROBE.exec)),
    init_containers=(container("log", restart_policy="Always", startup_probe=PROBE, liveness_probe=PROBE),),
)
MANIFESTS = (
    PROBED,
    manifest(container("app", startup_probe=PROBE), restart_policy="Never"),
    manifest(container("app"), container("log")),
    manifest(container("app", "busybox:2"), container("log")),
    manifest(container("app"), container("new"), restart_policy="OnFailure"),
    manifest(container("app", args=("x",)), restart_policy="Never"),
    manifest(container("app", **RAW)),
    manifest(host_users=False),
    manifest(
        container("app"),
        init_containers=(container("log"), container("new", restart_policy="Always")),
        restart_policy="OnFailure",
    ),
    HOOKED,
    ORDERED,
    manifest(hooked("app", EXEC, None), active_deadline_seconds=1000),
    manifest(
        container("app"),
        init_containers=(container("new", restart_policy="Always"), container("log")),
        ephemeral_containers=(EphemeralContainer(name="debug", image="busybox:1"),),
        restart_policy="Never",
    ),
)
NAMES = ("app", "log", "new", "debug", pleg.SANDBOX)


def step(life: Life, data: st.DataObject) -> None:
    """Advance the clock by a random time and send a random message to a pod, unless the message that was drawn is
    impossible in the pod's state.
    """
    life.at += data.draw(st.sampled_from((0, 1, 900, 11_000, 400_000)))
    uid = data.draw(st.sampled_from(("u1", "u2")))
    what = data.draw(
        st.sampled_from(
            ("good", "good", "good", "bad", "raise", "made", "wake", "apply", "withdraw", "up", "die", "probe")
        )
    )
    effects = sorted(life.effects)
    if what in ("good", "bad", "raise") and effects:
        effect = life.effects[data.draw(st.sampled_from(effects))]
        answer = bad_answer(effect, life.at, made=data.draw(st.booleans())) if what == "bad" else None
        if what == "good":
            answer = good_answer(effect, life.at)
        if answer is None:
            life.fail(effect.subject)
        else:
            life.when(answer)
    elif what == "made" and isinstance(start := life.effects.get("sandbox"), wanted.StartSandbox):
        life.answer("sandbox", signals.SandboxMade, id=f"sandbox-{start.uid}-{start.attempt}")
    elif what == "wake" and life.due is not None:
        life.wake()
    elif what == "apply":
        life.apply(data.draw(st.sampled_from(MANIFESTS)), uid=uid)
    elif what == "withdraw" and life.state is not None:
        life.withdraw(uid, data.draw(st.sampled_from((None, 0, 60))))
    elif what == "probe" and life.state is not None:
        probed(life, data, uid)
    elif what in ("up", "die") and life.state is not None:
        news(life, data, uid, what)


def probed(life: Life, data: st.DataObject, uid: str) -> None:
    """Send a probe result, current or outdated."""
    name, attempt = data.draw(st.sampled_from(NAMES[:-1])), data.draw(st.integers(0, 2))
    one = life.state.container(name)
    ref: dict[str, Any] = {
        "pod": POD,
        "uid": uid,
        "container": name,
        "attempt": attempt,
        "id": f"{name}-{uid}-{attempt}",
        "started_at": data.draw(st.sampled_from((one.started_at if one else 0, 1))),
    }
    probe: Any = data.draw(st.sampled_from(("Liveness", "Readiness", "Startup")))
    result: Any = data.draw(st.sampled_from(("success", "failure", "unknown")))
    life.when(prober.ResultChanged(probe=probe, result=result, **ref))


def news(life: Life, data: st.DataObject, uid: str, what: str) -> None:
    """Send a message from pleg, current or outdated."""
    name, attempt = data.draw(st.sampled_from(NAMES)), data.draw(st.integers(0, 2))
    stem = "sandbox" if name == pleg.SANDBOX else name
    container_id = data.draw(st.sampled_from((f"{stem}-{uid}-{attempt}", f"stranger-{name}")))
    ref: dict[str, Any] = {"pod": POD, "uid": uid, "container": name, "attempt": attempt, "id": container_id}
    began = life.at - data.draw(st.sampled_from((0, 500, 1_000_000)))
    if what == "up":
        life.when(pleg.ContainerStarted(started_at=began, **ref))
    else:
        life.when(pleg.ContainerDied(exit_code=1, reason="Error", started_at=began, finished_at=life.at, **ref))


def ends(life: Life) -> None:
    """Withdraw the pod and let all its effects succeed; check that it is gone after a limited number of steps."""
    for uid in ("u1", "u2"):
        if life.state is not None:
            life.withdraw(uid)
    for _ in range(100):
        if life.state is None:
            return
        if life.effects:
            life.when(good_answer(life.effects[min(life.effects)], life.at))
        else:
            assert life.due is not None, life.state
            life.wake()
    raise AssertionError(f"it never ends: {life.state}")


@settings(max_examples=120, deadline=None)
@with_data(data=st.data())
def test_no_sequence_of_messages_fails_and_every_termination_completes(data: st.DataObject) -> None:
    life = Watched().apply(data.draw(st.sampled_from(MANIFESTS)))
    for _ in range(data.draw(st.integers(0, 40))):
        step(life, data)
        if life.state is not None and life.state.uid:
            plain_status(life.state)
    ends(life)


@settings(max_examples=40, deadline=None)
@with_data(data=st.data(), wanted_one=st.sampled_from((*MANIFESTS[:4], HOOKED, ORDERED)))
def test_a_pod_without_disturbances_runs(data: st.DataObject, wanted_one: Pod) -> None:
    life = Watched().apply(wanted_one)
    for _ in range(data.draw(st.integers(0, 25))):
        step(life, data)
    ends(life)
    life.apply(wanted_one)
    for _ in range(100):
        if life.effects:
            life.when(good_answer(life.effects[min(life.effects)], life.at))
        elif life.due is not None:
            life.wake()
        for one in life.state.containers:
            run = {"attempt": one.attempt, "id": one.id, "started_at": one.started_at}
            ref: dict[str, Any] = {"pod": POD, "uid": "u1", "container": one.name, **run}
            life.when(prober.ResultChanged(probe="Startup", result="success", **ref))
    phases = [one.phase for one in life.state.containers]
    assert phases == ["running"] * len(phases)


def test_a_plan_that_loops_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    event = Life().apply(manifest()).answer("sandbox", signals.SandboxRefused, message="no").events[-1]
    monkeypatch.setattr(decider, "plan", lambda *_: (event,))
    with pytest.raises(RuntimeError, match="the plan does not settle"):
        running()


def test_each_timer_of_a_wait_fires_once() -> None:
    life = Life().apply(manifest()).answer("sandbox", signals.SandboxRefused, message="no")
    assert life.due is not None
    life.when(Due(at=life.due), at=life.due)
    assert life.due is None
