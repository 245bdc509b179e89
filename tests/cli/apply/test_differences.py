"""Differences between two objects, by path."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chronolet.cli.apply.differences import differences

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
    lines = list(differences(before, after, "x"))
    assert bool(lines) == (before != after)
    assert all(line.startswith("x") for line in lines)
    assert list(differences(after, before, "x")) == [] or lines


def test_a_line_has_the_path_and_both_values() -> None:
    before = {"spec": {"containers": [{"name": "a", "image": "x:1"}], "hostname": "h"}}
    after = {"spec": {"containers": [{"name": "a", "image": "x:2"}, {"name": "b"}]}}
    assert list(differences(before, after)) == [
        'spec.containers[0].image: "x:1" -> "x:2"',
        'spec.containers[1]: (none) -> {"name": "b"}',
        'spec.hostname: "h" -> (none)',
    ]
