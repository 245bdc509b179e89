"""Differences between two objects, by path."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chronolet.cli.printing.differences import differences

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_equal_objects_have_no_differences(value: Any) -> None:
    assert list(differences(value, value)) == []


@given(PLAIN, PLAIN)
def test_different_objects_have_lines(before: Any, after: Any) -> None:
    lines = [str(one) for one in differences(before, after, "x")]
    assert bool(lines) == (before != after)
    assert all(line.startswith("x") for line in lines)
    assert list(differences(after, before, "x")) == [] or lines


def test_a_line_has_the_path_and_both_values() -> None:
    before = {"spec": {"containers": [{"name": "a", "image": "x:1"}], "hostname": "h"}}
    after = {"spec": {"containers": [{"name": "a", "image": "x:2"}, {"name": "b"}]}}
    assert [str(one) for one in differences(before, after)] == [
        'spec.containers[a].image: "x:1" -> "x:2"',
        'spec.containers[b]: (none) -> {"name": "b"}',
        'spec.hostname: "h" -> (none)',
    ]


def test_items_are_compared_by_name_whatever_their_order_and_others_by_index() -> None:
    before = {
        "named": [{"name": "a", "n": 1}, {"name": "b", "n": 2}],
        "typed": [{"type": "Ready", "n": 1}],
        "list": [1, 2],
    }
    after = {"named": [{"name": "b", "n": 3}, {"name": "a", "n": 1}], "typed": [{"type": "Ready", "n": 2}], "list": [2]}
    assert [str(one) for one in differences(before, after)] == [
        "named[b].n: 2 -> 3",
        "typed[Ready].n: 1 -> 2",
        "list[0]: 1 -> 2",
        "list[1]: 2 -> (none)",
    ]
    twice = [{"name": "a", "n": 1}, {"name": "a", "n": 2}]
    assert [str(one) for one in differences(twice, [*twice[:1], {"name": "a", "n": 3}])] == ["[1].n: 2 -> 3"]
