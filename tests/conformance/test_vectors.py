"""Pins the kinds of case whose cases all pass: none may be lost, and new kinds must be added here."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conformance.runner import VECTORS, problems, results

ROOT = Path(__file__).parents[2]

PASSING = {
    "container_gc: dangling_container_log_links": 1,
    "container_gc: evict_containers": 24,
    "container_gc: evict_pod_log_directories": 2,
    "container_gc: evict_sandboxes": 10,
    "container_gc: garbage_collect_stages": 2,
    "container_gc: periodic_loop": 1,
    "container_gc: policy_validation": 1,
    "devices: allocatable_devices": 1,
    "devices: allocate_sequence": 14,
    "devices: allocated_resource_status": 1,
    "devices: capacity_sequence": 5,
    "devices: checkpoint": 3,
    "devices: default_value": 2,
    "devices: extended_resource_name": 17,
    "devices: filter_by_affinity": 5,
    "devices: preferred_allocation": 6,
    "devices: recorded_device_checks": 7,
    "devices: registration": 5,
    "devices: run_container_options": 1,
    "devices: sanitize_node_allocatable": 2,
    "devices: topology_hints": 6,
    "devices: topology_hints_recorded": 2,
    "events: broadcaster_queue": 2,
    "events: correlate_sequence": 22,
    "events: default_value": 6,
    "events: event_build": 5,
    "events: key_equality": 5,
    "events: sink_retry": 13,
    "image_gc: periodic_loop": 1,
    "image_gc: periodic_loop_enabled": 2,
    "image_gc: policy_validation": 6,
    "image_gc: sequence": 35,
    "pleg: default_value": 3,
    "pleg: evented_cache_update": 2,
    "pleg: health": 4,
    "pleg: pod_ips": 3,
    "pleg: relist_sequence": 13,
    "pleg: running_gauges": 1,
    "pleg: state_transition": 14,
    "pod_lifecycle: crash_loop_back_off": 5,
    "pod_lifecycle: crash_loop_back_off_keys": 2,
    "pod_lifecycle: default_value": 2,
    "pod_lifecycle: initialized_condition": 7,
    "pod_lifecycle: pod_actions": 54,
    "pod_lifecycle: pod_phase": 40,
    "pod_lifecycle: ready_conditions": 13,
    "pod_lifecycle: restart_decision": 15,
    "probes: container_status_flags": 10,
    "probes: exec_probe": 8,
    "probes: grpc_probe": 5,
    "probes: handler_retries": 7,
    "probes: http_probe": 19,
    "probes: http_request_headers": 8,
    "probes: http_url": 5,
    "probes: port_resolution": 8,
    "probes: probe_spec": 1,
    "probes: start_jitter": 1,
    "probes: tcp_probe": 3,
    "probes: worker_sequence": 25,
    "probes: worker_set": 4,
    "qos_cgroups: effective_pod_request": 3,
    "qos_cgroups: milli_cpu_to_quota": 10,
    "qos_cgroups: milli_cpu_to_shares": 13,
    "qos_cgroups: oom_score_adj": 10,
    "qos_cgroups: pod_qos_class": 23,
    "qos_cgroups: pod_resource_config": 16,
    "qos_cgroups: qos_level_cpu": 3,
    "qos_cgroups: qos_level_memory_min": 2,
    "qos_cgroups: qos_level_memory_reserve": 5,
    "qos_cgroups: qos_level_memory_reserve_retry": 1,
    "qos_cgroups: shares_to_weight": 9,
    "qos_cgroups: weight_to_shares": 4,
}


def test_exactly_the_pinned_kinds_pass() -> None:
    passed: Counter[str] = Counter()
    failing: set[str] = set()
    for path in sorted(VECTORS.glob("*.json")):
        for result in results(path):
            kind = f"{result.subsystem}: {result.kind}"
            passed[kind] += 1
            if result.problems:
                failing.add(kind)
    assert {kind: count for kind, count in passed.items() if kind not in failing} == PASSING


def test_a_wrong_expectation_fails() -> None:
    vectors = msgspec.json.decode((VECTORS / "pod_lifecycle.json").read_bytes())
    case = next(one for one in vectors["cases"] if one["kind"] == "restart_decision")
    case["expect"]["restart"] = not case["expect"]["restart"]
    assert problems("pod_lifecycle", case) != []


def test_an_unknown_kind_fails_with_its_name() -> None:
    assert problems("pod_lifecycle", {"kind": "levitation", "name": "x"}) == ["nothing implements levitation yet"]


@pytest.mark.parametrize(
    "broken",
    [
        {"name": "x", "kind": "restart_decision"},
        {"name": "x", "kind": "restart_decision", "given": None, "expect": {}},
        {"name": "x", "kind": "crash_loop_back_off", "given": {}, "steps": [{}], "expect": {}},
        {"name": "x", "kind": ["a list"]},
        {},
    ],
)
def test_a_case_that_cannot_be_run_is_one_failure(tmp_path: Path, broken: dict[str, Any]) -> None:
    vectors = msgspec.json.decode((VECTORS / "pod_lifecycle.json").read_bytes())
    good = next(one for one in vectors["cases"] if one["kind"] == "restart_decision")
    path = tmp_path / "v.json"
    path.write_bytes(msgspec.json.encode({"subsystem": "pod_lifecycle", "cases": [broken, good]}))
    first, second = results(path)
    assert (first.name, len(first.problems)) == (broken.get("name", "no name"), 1)
    assert not second.problems


def test_the_last_line_counts_the_cases(tmp_path: Path) -> None:
    case = {
        "name": "one",
        "kind": "state_transition",
        "given": {"old_state": "running", "new_state": "running"},
        "expect": {"computed_events": []},
    }
    wrong = {**case, "name": "two", "expect": {"computed_events": ["died"]}}
    vectors = tmp_path / "v.json"
    vectors.write_bytes(msgspec.json.encode({"subsystem": "pleg", "cases": [case, wrong]}))
    run = subprocess.run(
        [sys.executable, "-m", "tests.conformance.runner", str(vectors)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert run.stdout.splitlines() == [
        "pleg: two (state_transition): computed_events: expected ['died'], found []",
        "1 passed, 1 failed",
    ]


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"subsystem": "pleg", "cases": []}'])
def test_a_file_without_vectors_is_reported_in_one_line(tmp_path: Path, content: bytes | None) -> None:
    """A file without vectors does not prevent other files from being run."""
    path = tmp_path / "none.json"
    if content is not None:
        path.write_bytes(content)
    run = subprocess.run(
        [sys.executable, "-m", "tests.conformance.runner", str(path), str(VECTORS / "image_gc.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert str(path) in run.stderr
    assert run.stdout == "44 passed, 0 failed\n"
