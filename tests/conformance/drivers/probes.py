"""Cases of probes.json that the prober's decider and its helpers answer, and the pod's flags.

A tick of the kubelet's worker is what the pod and the ProbeWorker say at that time: the pod that a container is to be
probed, was found started, exited, waits, is to go; the worker an outcome, if it is at work and its first time has come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from chronolet.prober import schedule, signals, wanted
from chronolet.prober.decider import DECIDER
from chronolet.prober.state import State
from chronolet_schemas import pod, prober
from chronolet_schemas.envelope import Event, Message
from chronolet_schemas.podspec import Probe
from tests.conformance.outcome import Case, differences

_NAMES: dict[str, prober.ProbeName] = {"liveness": "Liveness", "readiness": "Readiness", "startup": "Startup"}
_POD = "default/web"


class Ticks:
    """One probe, and what it has come to."""

    def __init__(self, given: Case) -> None:
        self.state: State | None = DECIDER.initial
        self._given = given
        self._probe = _NAMES[given["probe_type"]]
        self._known = ""
        self.said: Sequence[Event] = ()
        """The events of the last tick."""
        self._thresholds = (given["success_threshold"], given["failure_threshold"])

    def tick(self, step: Case) -> dict[str, Any]:
        """What is expected of one step."""
        now, said = step["t_seconds"] * 1000, list[Event]()
        for message in self._of_pod(step):
            said += self._told(message, now)
        at_work = [one for one in self._outstanding() if one.from_at <= now]
        for effect in at_work:
            outcome = signals.ProbeOutcome(intent=effect.intent, outcome=step["handler_result"], at=now, milliseconds=1)
            said += self._told(outcome, now)
        self.said = said
        state = self.state or State()
        ended = any(isinstance(event, prober.ProbingEnded) for event in said)
        return {
            "keep_going": self.state is not None and not ended,
            "handler_called": bool(at_work),
            "published": state.result or None,
            "updates": [event.result for event in said if isinstance(event, prober.ResultChanged)],
            "on_hold": state.held,
            "run_count": state.consecutive,
        }

    def as_expected(self, expect: Case) -> Case:
        """Counting beyond the threshold changes nothing."""
        word = 1 if self.state and self.state.last == "failure" else 0
        return expect | {"run_count": min(expect["run_count"], self._thresholds[word])}

    def _outstanding(self) -> list[wanted.RunProbe]:
        effects = DECIDER.outstanding(self.state) if self.state else ()
        return [one for one in effects if isinstance(one, wanted.RunProbe)]

    def _told(self, message: Message, now: int) -> Sequence[Event]:
        if self.state is None:
            return ()
        said = DECIDER.decide(self.state, message, now)
        for event in said:
            self.state = DECIDER.evolve(self.state or DECIDER.initial, event)
        return said

    def _of_pod(self, step: Case) -> Iterator[Message]:
        """What the pod says of what the kubelet would find. Of a container it knows no status of, it says nothing."""
        container, phase = step["container"], step["pod_phase"]
        if phase in ("Failed", "Succeeded"):
            yield pod.ProbingWithdrawn(probe=self._probe, **_who(container))
        elif phase is not None and container is not None:
            yield from self._of_container(container)
            if step.get("deletion_requested"):
                yield pod.ContainerStopRequested(
                    id=container["id"], grace_period_seconds=30, deadline=0, reason="Deleted", **_who(container)
                )

    def _of_container(self, container: Case) -> Iterator[Message]:
        if container["id"] != self._known:
            self._known = container["id"]
            yield self._request(container)
        if container["state"] == "waiting":
            yield pod.RestartScheduled(at=0, back_off_seconds=0, next_back_off_seconds=0, **_who(container))
        elif container["state"] == "terminated":
            yield pod.ContainerExited(
                id=container["id"],
                exit_code=container.get("exit_code", 0),
                reason="Completed",
                started_at=0,
                finished_at=0,
                **_who(container),
            )
        elif container["started"]:
            yield pod.ContainerProbed(id=container["id"], probe="Startup", result="success", **_who(container))

    def _request(self, container: Case) -> pod.ProbingRequested:
        given = self._given
        sidecar = given.get("container_is_restartable_init", False)
        return pod.ProbingRequested(
            id=container["id"],
            started_at=container["started_at_seconds"] * 1000,
            ip="10.0.0.5",
            restarts="Always" if sidecar else given["pod_restart_policy"],
            started=container["started"],
            field="spec.containers{app}",
            probe=self._probe,
            definition=Probe(
                initial_delay_seconds=given["initial_delay_seconds"],
                period_seconds=given["period_seconds"],
                success_threshold=given["success_threshold"],
                failure_threshold=given["failure_threshold"],
            ),
            period_milliseconds=given["period_seconds"] * 1000,
            **_who(container),
        )


def _who(container: Case | None) -> dict[str, Any]:
    attempt = int(container["id"].rpartition("-")[2]) - 1 if container else 0
    return {"pod": _POD, "uid": "u1", "container": "app", "attempt": attempt}


def _worker_sequence(case: Case) -> Iterable[str]:
    worker = Ticks(case["given"])
    for number, step in enumerate(case["steps"]):
        found = worker.tick(step)
        yield from differences(worker.as_expected(step["expect"]), found, f"step {number}: ")


def _start_jitter(case: Case) -> Iterable[str]:
    """Containers that ran before an agent that is this young."""
    period, now = case["given"]["period_seconds"] * 1000, 1_700_000_000_000
    sleeps = [
        schedule.first_at(started_at=now - 10 * period, delay=0, period=period, now=now, seed=f"k{n}/Liveness") - now
        for n in range(1_000)
    ]
    found = {
        "random_sleep": len(set(sleeps)) > len(sleeps) // 2,
        "sleep_min_seconds": min(sleeps) // 1000,
        "sleep_max_seconds": -(-max(sleeps) // 1000),
    }
    return differences(case["expect"], found)


KINDS = {
    "worker_sequence": _worker_sequence,
    "start_jitter": _start_jitter,
}
