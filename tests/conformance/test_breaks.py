"""Breaks the product on purpose, in each place where a driver once replaced the product's code: the vectors must fail.

If no case fails, a driver decides something that the product should decide.
"""

from __future__ import annotations

import socket
from typing import Any, NamedTuple

import msgspec
import pytest

from chronolet.adapters.probes.handlers import grpc, tcp
from chronolet.container_gc import effects as collecting
from chronolet.container_gc.planning import plan
from chronolet.devices import evolve
from chronolet.devices.claims import waiting
from chronolet.kube_events import effects as event_effects
from chronolet.kube_events import policy as event_policy
from chronolet.pleg import decider as pleg_decider
from chronolet.pleg.containers.changes import changes
from chronolet.pod.planning import probing, starting
from chronolet.pod.status import status
from chronolet.ports.kube_sinks import Outcome
from chronolet.prober import decider, reporting, schedule
from chronolet.prober.workers import probe_worker
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event
from tests.conformance.runner import VECTORS, problems


class Break(NamedTuple):
    """A place in the product, its replacement, and a case that must fail with the replacement."""

    module: Any
    name: str
    instead: Any
    subsystem: str
    case: str


def _forget_claims(state: Any, event: devices.RegistryOpened) -> Any:
    return msgspec.structs.replace(_OPENED(state, event), claims=type(state)().claims)


def _no_release(raw: socket.socket) -> None:
    raw.close()


def _known_names(state: Any, *kinds: str) -> list[str]:
    return [one.name for one in state.of_kind(*kinds)]


def _first_failure_ends(name: Any, scan: Any, judge: Any) -> plan.Judged:
    return plan.Judged(name, error=scan.errors.get(name, ""), verdicts=() if scan.errors else judge())


def _uncut(state: Any, message: Any) -> Any:
    return tuple(changes(state, message.observed))


_OPENED = evolve._CHANGES[devices.RegistryOpened]
_FORGETFUL: dict[type[Event], Any] = {**evolve._CHANGES, devices.RegistryOpened: _forget_claims}
_WANTED = probing.wanted

BREAKS: dict[str, Break] = {
    "a restart does not wait": Break(
        starting, "wait_seconds", lambda *_: 0, "pod_lifecycle", "backoff_polled_while_waiting"
    ),
    "a warning is published as a failure": Break(
        decider,
        "counts_as",
        lambda outcome: "success" if outcome == "success" else "failure",
        "probes",
        "http_status_304",
    ),
    "a warning is not reported": Break(
        reporting, "kube_events_for", lambda *_: (), "probes", "http_redirect_other_host_not_followed"
    ),
    "errors are not retried": Break(probe_worker, "should_retry", lambda *_: False, "probes", "error_then_success"),
    "an error of the health service counts as an error of the probe": Break(
        grpc, "_checked", lambda *_: ("error", "", False), "probes", "grpc_unimplemented"
    ),
    "an error of closing ends the attempt": Break(
        tcp, "closed", _no_release, "probes", "tcp_close_error_after_connect_still_success"
    ),
    "a restart loses allocations": Break(
        evolve,
        "_CHANGES",
        _FORGETFUL,
        "devices",
        "checkpoint_round_trip",
    ),
    "a present checkpoint is not kept": Break(
        evolve,
        "_CHANGES",
        _FORGETFUL,
        "devices",
        "present_checkpoint_does_not_reset_capacity",
    ),
    "recorded devices are not checked": Break(
        waiting, "problem_of", lambda *_: None, "devices", "recorded_but_now_unhealthy"
    ),
    "sidecars are not probed": Break(
        probing,
        "wanted",
        lambda state, one: _WANTED(state, one) if one.kind == "app" else {},
        "probes",
        "sidecar_probes_get_workers_plain_init_does_not",
    ),
    "the end of a pod does not end its probes": Break(
        decider, "_stopping", lambda *_: (), "probes", "stop_liveness_and_startup_only"
    ),
    "a container in an unknown state is removed without a stop": Break(
        collecting, "_stop", lambda *_: None, "container_gc", "unknown_state_is_stopped_first"
    ),
    "the result of a probe is not in the published status": Break(
        probing,
        "flags",
        lambda *_, **__: probing.Flags(started=True, ready=True),
        "pod_lifecycle",
        "conditions_second_unready",
    ),
    "a container without a status counts as complete": Break(
        status, "_names", _known_names, "pod_lifecycle", "initialized_missing"
    ),
    "a readiness gate is not read": Break(status, "stated", lambda _: {}, "pod_lifecycle", "conditions_gate_false"),
    "a failed delivery is not retried": Break(
        event_effects, "_delivered", lambda *_: Outcome(delivered=1), "events", "transport_error_once"
    ),
    "a sink waits equally long before each retry": Break(
        event_policy.Rules, "retry_at", lambda _, now, **__: now + 5_000, "events", "transport_error_forever"
    ),
    "a failed listing counts as empty": Break(
        plan, "errors", lambda _: (), "container_gc", "stages_run_even_if_an_earlier_one_fails"
    ),
    "a failed stage ends the run": Break(
        plan, "_stage", _first_failure_ends, "container_gc", "stages_run_even_if_an_earlier_one_fails"
    ),
    "no listing is truncated": Break(pleg_decider, "_listing_events", _uncut, "pleg", "full_channel_drops_events"),
    "young containers are probed immediately": Break(
        schedule, "spread", lambda *_: 0, "probes", "first_probe_jitter_on_young_kubelet"
    ),
}


def _case(subsystem: str, name: str) -> dict[str, Any]:
    cases = msgspec.json.decode((VECTORS / f"{subsystem}.json").read_bytes())["cases"]
    found: list[dict[str, Any]] = [one for one in cases if one["name"] == name]
    (case,) = found
    return case


@pytest.mark.parametrize("what", BREAKS)
def test_a_broken_product_fails_its_case(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = BREAKS[what]
    case = _case(broken.subsystem, broken.case)
    assert not problems(broken.subsystem, case), "the case must pass while nothing is broken"
    monkeypatch.setattr(broken.module, broken.name, broken.instead)
    # Some breaks are noticeable only because an answer never arrives.
    assert problems(broken.subsystem, case | {"patience_seconds": 5.0})
