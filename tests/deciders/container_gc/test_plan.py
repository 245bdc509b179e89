"""Which containers, sandboxes, log folders and links are removed, in cases that the shared vectors do not contain."""

from __future__ import annotations

from typing import Any

import pytest

from chronolet.container_gc import policy, signals
from chronolet.container_gc.planning import containers, logs, plan, sandboxes
from chronolet.container_gc.planning.verdicts import BEING_MADE_MS, NEWS_MS, Pods
from chronolet.rules.names.aggregate import aggregate
from chronolet_schemas.container_gc import Policy

NOW = 10_000_000
PODS = Pods(known={"u1"})


def seen(name: str, **more: Any) -> signals.RuntimeObject:
    fields: dict[str, Any] = {
        "id": name,
        "name": name,
        "pod": "default/web",
        "uid": "u1",
        "container": "app",
        "created_at": 1_000,
        "state": "exited",
    }
    return signals.RuntimeObject(**fields | more)


def rules(*found: signals.RuntimeObject, pods: Pods = PODS, rule: Policy | None = None) -> dict[str, tuple[bool, str]]:
    judged = containers.judged(found, pods, rule or Policy(), NOW)
    return {one.id: (one.remove, one.rule) for one in judged}


def test_of_two_containers_of_one_second_the_later_attempt_is_newer() -> None:
    assert rules(seen("a", attempt=1), seen("b", attempt=0)) == {
        "a": (False, "within_limits"),
        "b": (True, "per_container_limit"),
    }


def test_a_container_that_was_just_created_is_kept() -> None:
    young = NOW - BEING_MADE_MS + 1
    none = Policy(max_per_container=0)
    assert rules(seen("a", state="created", created_at=young), rule=none) == {"a": (False, "being_made")}
    assert rules(seen("a", state="created", created_at=young - 1), rule=none) == {"a": (True, "per_container_limit")}
    assert rules(seen("a", state="exited", created_at=young), rule=none) == {"a": (True, "per_container_limit")}


def test_a_created_container_of_a_deleted_pod_is_removed_once_its_start_is_overdue() -> None:
    young = seen("a", state="created", uid="u9", created_at=NOW - BEING_MADE_MS + 1)
    assert rules(young) == {"a": (False, "being_made")}
    overdue = seen("a", state="created", uid="u9", created_at=NOW - BEING_MADE_MS)
    assert rules(overdue) == {"a": (True, "deleted_pod")}


def test_a_container_with_a_future_date_stays_and_counts_for_no_limit() -> None:
    found = (seen("a", created_at=NOW + 86_400_000), seen("b", attempt=1), seen("c"))
    assert rules(*found, rule=Policy(max_containers=1)) == {
        "a": (False, "young"),
        "b": (False, "within_limits"),
        "c": (True, "per_container_limit"),
    }


def test_a_container_of_an_unknown_pod_is_kept_for_the_delay_of_news() -> None:
    assert rules(seen("a", uid="u9", created_at=NOW - NEWS_MS + 1)) == {"a": (False, "news_awaited")}
    assert rules(seen("a", uid="u9", created_at=NOW - NEWS_MS)) == {"a": (True, "deleted_pod")}


def test_no_container_counts_as_a_deleted_pods_before_all_sources_are_ready() -> None:
    unsure = Pods(known=(), sources_ready=False)
    found = rules(seen("a", attempt=1), seen("b"), pods=unsure)
    assert found == {"a": (False, "within_limits"), "b": (True, "per_container_limit")}


def test_containers_of_finished_pods_are_removed_if_requested() -> None:
    finished = Pods(known={"u1", "u2"}, terminated={"u1"}, evict_terminated=True)
    found = rules(seen("a"), seen("b", uid="u2"), pods=finished)
    assert found == {"a": (True, "terminated_pod"), "b": (False, "within_limits")}


def test_containers_left_alone_by_an_earlier_log_stay() -> None:
    other = {"uid": "u9", "of_this_log": False}
    assert rules(seen("a", **other)) == {"a": (False, "left_alone")}
    assert sandbox_rules(seen("a", **other)) == {"a": "left_alone"}
    # A container of an adopted pod is treated like any other.
    assert rules(seen("a", of_this_log=False, attempt=1), seen("b")) == {
        "a": (False, "within_limits"),
        "b": (True, "per_container_limit"),
    }


def test_a_dead_container_with_our_label_and_no_pod_is_removed_once_it_is_old() -> None:
    unidentified = {"pod": "", "uid": "", "container": ""}
    hour = Policy(min_age_milliseconds=3_600_000)
    assert rules(seen("a", **unidentified)) == {"a": (True, "unidentified")}
    assert rules(seen("a", state="running", **unidentified)) == {"a": (False, "running")}
    assert rules(seen("a", created_at=NOW - 5, **unidentified), rule=hour) == {"a": (False, "young")}


def test_the_limit_for_the_node_is_divided_among_pods() -> None:
    units = [seen(f"{name}{attempt}", container=name, attempt=attempt) for name in "ab" for attempt in range(3)]
    found = rules(*units, rule=Policy(max_per_container=-1, max_containers=4))
    assert {known for known, (remove, _) in found.items() if remove} == {"a0", "b0"}
    assert {why for remove, why in found.values() if remove} == {"share_of_total"}


def test_the_oldest_containers_are_removed_if_one_per_pod_exceeds_the_limit() -> None:
    units = [seen(name, container=name, created_at=at) for name, at in (("a", 30), ("b", 10), ("c", 20))]
    found = rules(*units, rule=Policy(max_containers=1))
    assert found == {"b": (True, "total_limit"), "c": (True, "total_limit"), "a": (False, "within_limits")}


def sandbox_rules(
    *found: signals.RuntimeObject, pods: Pods = PODS, occupied: frozenset[str] = frozenset()
) -> dict[str, str]:
    return {one.id: one.rule for one in sandboxes.judged(found, occupied, pods, NOW)}


def test_sandboxes_have_the_same_safety_margins() -> None:
    created = seen("a", state="created", created_at=NOW - 5)
    assert sandbox_rules(created, seen("b", created_at=NOW)) == {"a": "being_made", "b": "newest_sandbox"}
    assert sandbox_rules(seen("a", uid="u9", created_at=NOW - NEWS_MS + 1)) == {"a": "news_awaited"}
    assert sandbox_rules(seen("a", uid="u9", created_at=NOW - NEWS_MS)) == {"a": "deleted_pod"}


def test_a_sandbox_that_runs_or_has_a_container_stays() -> None:
    found = sandbox_rules(seen("a", uid="u9", state="running"), seen("b", uid="u9"), occupied=frozenset({"b"}))
    assert found == {"a": "ready", "b": "has_containers"}


def test_no_sandbox_counts_as_a_deleted_pods_before_all_sources_are_ready() -> None:
    unsure = Pods(known=(), sources_ready=False)
    assert sandbox_rules(seen("a"), pods=unsure) == {"a": "newest_sandbox"}


def scan(**more: Any) -> signals.Looked:
    return signals.Looked(node="node", policy=Policy(), **more)


def test_a_sandbox_is_removed_after_its_last_container() -> None:
    gone = {"uid": "u9"}
    stages = plan.judged(
        scan(containers=(seen("a", sandbox_id="s", **gone),), sandboxes=(seen("s", container="POD", **gone),)),
        PODS,
        Policy(),
        NOW,
    )
    assert [one.id for one in plan.victims(stages)] == ["a", "s"]


def test_no_sandbox_is_removed_if_containers_cannot_be_listed() -> None:
    stages = plan.judged(
        scan(sandboxes=(seen("s", uid="u9"),), errors={"containers": "no listing"}), PODS, Policy(), NOW
    )
    assert plan.victims(stages) == ()
    assert plan.kept(stages) == {"has_containers": 1}
    assert plan.errors(stages) == ["no listing"]


def test_log_folders_and_links() -> None:
    there = [signals.Folder(name=one, changed_at=NOW - NEWS_MS) for one in ("default_web_u1", "u9")]
    there.append(signals.Folder(name="u8", changed_at=NOW - NEWS_MS + 1))
    found = {one.id: (one.rule, one.remove) for one in logs.folders(there, PODS, NOW)}
    assert found == {
        "default_web_u1": ("known_pod", False),
        "u9": ("deleted_pod", True),
        "u8": ("news_awaited", False),
    }
    unsure = Pods(known={"u1"}, sources_ready=False)
    assert [one.rule for one in logs.folders(there[:2], unsure, NOW)] == ["known_pod", "sources_not_ready"]
    link = signals.Link(name="l", target_exists=False, container_dead=False)
    assert [one.rule for one in logs.links([link])] == ["not_dangling"]


def test_an_invalid_policy_is_refused_with_its_problem() -> None:
    assert policy.problem(Policy()) == ""
    assert policy.problem(Policy(min_age_milliseconds=-1)) == "minimum age: found -1 ms, expected 0 or more"


@pytest.mark.parametrize(
    ("errors", "text"), [([], ""), (["", "a"], "a"), (["a", "a"], "a"), (["a", "b", "a"], "[a, b]")]
)
def test_errors_are_aggregated(errors: list[str], text: str) -> None:
    assert aggregate(errors) == text
