"""Which images are removed, in cases that the shared vectors of the kubelet's rules do not contain."""

from __future__ import annotations

from typing import Any

import immutables
import pytest

from chronolet.image_gc import policy
from chronolet.image_gc.planning import plan
from chronolet.image_gc.signals import Disk
from chronolet.image_gc.state import Record, State
from chronolet_schemas.image_gc import Image, Policy

NOW = 10_000_000
EAGER = Policy(min_age_milliseconds=0)


def record(name: str, *, used: bool = False, size: int = 100, pinned: bool = False, **times: int) -> Record:
    fields: dict[str, Any] = {"first_detected": 5, "last_used": 0} | times
    return Record(image=Image(id=name, size_bytes=size, pinned=pinned, user_count=int(used)), **fields)


def judged(*records: Record, rules: Policy = EAGER, disk: Disk | None = None, **more: Any) -> plan.Plan:
    state = State(records=immutables.Map({one.image.id: one for one in records}), began_at=1)
    full = Disk(capacity_bytes=1000, available_bytes=50)
    return plan.judged(state, rules, more.get("operation", "collect"), disk or full, NOW)


def why(found: plan.Plan) -> dict[str, str]:
    return {one.id: one.reason for one in found.going} | {one.image.id: one.why for one in found.staying}


def test_every_image_has_a_reason() -> None:
    rules = Policy(min_age_milliseconds=1_000)
    found = judged(
        record("used", used=True),
        record("pinned", pinned=True),
        record("young", first_detected=NOW - 999),
        record("just", last_used=NOW),
        record("first", size=150),
        record("second", first_detected=6),
        rules=rules,
    )
    assert why(found) == {
        "used": "in_use",
        "pinned": "pinned",
        "young": "young",
        "just": "just_used",
        "first": "space",
        "second": "enough_freed",
    }
    assert [one.id for one in found.spare] == ["second"]
    assert found.kept() == {"in_use": 1, "pinned": 1, "young": 1, "just_used": 1}


def test_an_unused_image_ages_from_its_first_detection() -> None:
    rules = Policy(min_age_milliseconds=0, max_age_milliseconds=1_000)
    full = Disk(capacity_bytes=1000, available_bytes=900)
    assert why(judged(record("a", first_detected=NOW - 1_001), rules=rules, disk=full)) == {"a": "age"}
    assert why(judged(record("a", first_detected=NOW - 1_000), rules=rules, disk=full)) == {"a": "below_threshold"}


def test_usage_at_the_low_threshold_frees_nothing() -> None:
    rules = Policy(high_threshold_percent=90, low_threshold_percent=89, min_age_milliseconds=0)
    found = judged(record("a"), rules=rules, disk=Disk(capacity_bytes=99, available_bytes=10))
    assert (found.usage_percent, found.wanted_bytes) == (90, 0)
    assert why(found) == {"a": "below_threshold"}


def test_an_image_without_a_name_is_shown_by_its_id() -> None:
    (going,) = judged(record("sha256:" + "0123456789abcdef" * 4)).going
    assert going.name == "sha256:0123456789ab"


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        (Policy(), ""),
        (Policy(high_threshold_percent=101), "high threshold: found 101, expected a percentage from 0 to 100"),
        (Policy(low_threshold_percent=-1), "low threshold: found -1, expected a percentage from 0 to 100"),
        (Policy(low_threshold_percent=85), "low threshold: found 85, expected less than the high threshold, 85"),
        (Policy(min_age_milliseconds=-1), "minimum age: found -1 ms, expected 0 or more"),
        (Policy(max_age_milliseconds=-1), "maximum age: found -1 ms, expected 0 (none) or more"),
        (Policy(max_age_milliseconds=120_000), "maximum age: found 120000 ms, expected more than the minimum age"),
        (Policy(max_age_milliseconds=120_001), ""),
    ],
)
def test_an_invalid_policy_is_refused_with_its_problem(rules: Policy, problem: str) -> None:
    assert policy.problem(rules) == problem
