"""Which containers, sandboxes, log folders and links go, beyond what the shared vectors say of the kubelet's rules."""

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


def test_of_two_made_in_the_same_second_the_later_attempt_is_the_newer() -> None:
    assert rules(seen("a", attempt=1), seen("b", attempt=0)) == {
        "a": (False, "within_limits"),
        "b": (True, "per_container_limit"),
    }


def test_what_was_just_made_is_about_to_be_started() -> None:
    young = NOW - BEING_MADE_MS + 1
    none = Policy(max_per_container=0)
    assert rules(seen("a", state="created", created_at=young), rule=none) == {"a": (False, "being_made")}
    assert rules(seen("a", state="created", created_at=young - 1), rule=none) == {"a": (True, "per_container_limit")}
    assert rules(seen("a", state="exited", created_at=young), rule=none) == {"a": (True, "per_container_limit")}


def test_what_was_created_for_a_pod_that_is_gone_goes_when_its_start_is_overdue() -> None:
    young = seen("a", state="created", uid="u9", created_at=NOW - BEING_MADE_MS + 1)
    assert rules(young) == {"a": (False, "being_made")}
    overdue = seen("a", state="created", uid="u9", created_at=NOW - BEING_MADE_MS)
    assert rules(overdue) == {"a": (True, "deleted_pod")}


def test_what_a_clock_that_was_ahead_has_dated_stays_and_takes_nothing_else_with_it() -> None:
    found = (seen("a", created_at=NOW + 86_400_000), seen("b", attempt=1), seen("c"))
    assert rules(*found, rule=Policy(max_containers=1)) == {
        "a": (False, "young"),
        "b": (False, "within_limits"),
        "c": (True, "per_container_limit"),
    }


def test_the_news_of_a_pod_may_be_younger_than_its_container() -> None:
    assert rules(seen("a", uid="u9", created_at=NOW - NEWS_MS + 1)) == {"a": (False, "news_awaited")}
    assert rules(seen("a", uid="u9", created_at=NOW - NEWS_MS)) == {"a": (True, "deleted_pod")}


def test_without_all_sources_no_container_is_a_deleted_pods() -> None:
    unsure = Pods(known=(), sources_ready=False)
    found = rules(seen("a", attempt=1), seen("b"), pods=unsure)
    assert found == {"a": (False, "within_limits"), "b": (True, "per_container_limit")}


def test_a_finished_pod_is_given_up_where_that_is_wanted() -> None:
    finished = Pods(known={"u1", "u2"}, terminated={"u1"}, evict_terminated=True)
    found = rules(seen("a"), seen("b", uid="u2"), pods=finished)
    assert found == {"a": (True, "terminated_pod"), "b": (False, "within_limits")}


def test_what_an_earlier_log_left_alone_stays_left_alone() -> None:
    other = {"uid": "u9", "of_this_log": False}
    assert rules(seen("a", **other)) == {"a": (False, "left_alone")}
    assert sandbox_rules(seen("a", **other)) == {"a": "left_alone"}
    # One of a pod that was adopted is like any other.
    assert rules(seen("a", of_this_log=False, attempt=1), seen("b")) == {
        "a": (False, "within_limits"),
        "b": (True, "per_container_limit"),
    }


def test_what_has_our_label_and_tells_of_no_pod_goes_when_it_is_dead_and_old_enough() -> None:
    nobody = {"pod": "", "uid": "", "container": ""}
    hour = Policy(min_age_milliseconds=3_600_000)
    assert rules(seen("a", **nobody)) == {"a": (True, "unidentified")}
    assert rules(seen("a", state="running", **nobody)) == {"a": (False, "running")}
    assert rules(seen("a", created_at=NOW - 5, **nobody), rule=hour) == {"a": (False, "young")}


def test_the_share_of_the_total_may_be_enough() -> None:
    units = [seen(f"{name}{attempt}", container=name, attempt=attempt) for name in "ab" for attempt in range(3)]
    found = rules(*units, rule=Policy(max_per_container=-1, max_containers=4))
    assert {known for known, (remove, _) in found.items() if remove} == {"a0", "b0"}
    assert {why for remove, why in found.values() if remove} == {"share_of_total"}


def test_the_oldest_of_all_go_where_even_one_of_each_is_too_many() -> None:
    units = [seen(name, container=name, created_at=at) for name, at in (("a", 30), ("b", 10), ("c", 20))]
    found = rules(*units, rule=Policy(max_containers=1))
    assert found == {"b": (True, "total_limit"), "c": (True, "total_limit"), "a": (False, "within_limits")}


def sandbox_rules(
    *found: signals.RuntimeObject, pods: Pods = PODS, occupied: frozenset[str] = frozenset()
) -> dict[str, str]:
    return {one.id: one.rule for one in sandboxes.judged(found, occupied, pods, NOW)}


def test_sandboxes_have_the_same_margins() -> None:
    made = seen("a", state="created", created_at=NOW - 5)
    assert sandbox_rules(made, seen("b", created_at=NOW)) == {"a": "being_made", "b": "newest_sandbox"}
    assert sandbox_rules(seen("a", uid="u9", created_at=NOW - NEWS_MS + 1)) == {"a": "news_awaited"}
    assert sandbox_rules(seen("a", uid="u9", created_at=NOW - NEWS_MS)) == {"a": "deleted_pod"}


def test_a_sandbox_that_runs_or_holds_a_container_stays() -> None:
    found = sandbox_rules(seen("a", uid="u9", state="running"), seen("b", uid="u9"), occupied=frozenset({"b"}))
    assert found == {"a": "ready", "b": "has_containers"}


def test_without_all_sources_no_sandbox_is_a_deleted_pods() -> None:
    unsure = Pods(known=(), sources_ready=False)
    assert sandbox_rules(seen("a"), pods=unsure) == {"a": "newest_sandbox"}


def look(**more: Any) -> signals.Looked:
    return signals.Looked(node="node", policy=Policy(), **more)


def test_a_sandbox_goes_with_the_last_of_its_containers() -> None:
    gone = {"uid": "u9"}
    stages = plan.judged(
        look(containers=(seen("a", sandbox_id="s", **gone),), sandboxes=(seen("s", container="POD", **gone),)),
        PODS,
        Policy(),
        NOW,
    )
    assert [one.id for one in plan.victims(stages)] == ["a", "s"]


def test_where_containers_cannot_be_listed_no_sandbox_is_known_to_be_empty() -> None:
    stages = plan.judged(
        look(sandboxes=(seen("s", uid="u9"),), errors={"containers": "no listing"}), PODS, Policy(), NOW
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


def test_a_policy_is_refused_by_what_is_wrong_with_it() -> None:
    assert policy.problem(Policy()) == ""
    assert policy.problem(Policy(min_age_milliseconds=-1)) == "minimum age: found -1 ms, expected 0 or more"


@pytest.mark.parametrize(
    ("errors", "text"), [([], ""), (["", "a"], "a"), (["a", "a"], "a"), (["a", "b", "a"], "[a, b]")]
)
def test_errors_are_put_together(errors: list[str], text: str) -> None:
    assert aggregate(errors) == text
