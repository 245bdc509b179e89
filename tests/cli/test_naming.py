"""Resource arguments: types and names as separate words, or as `TYPE/NAME`."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.cli.naming import asked_types, types_and_names


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pods"], ("pods", ())),
        (["po", "a", "b", "a"], ("pods", ("a", "b"))),
        (["pod/a", "po/b"], ("pods", ("a", "b"))),
        (["actor/pod/3"], ("actors", ("pod/3",))),
        (["actors", "pod/3", "pleg"], ("actors", ("pod/3", "pleg"))),
    ],
)
def test_names_follow_their_type_or_include_it(words: list[str], expected: tuple[str, tuple[str, ...]]) -> None:
    assert types_and_names(words, ("pods", "containers", "actors")) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pods,actors"], (("pods", ()), ("actors", ()))),
        (["po,actor,pods", "a"], (("pods", ("a",)), ("actors", ("a",)))),
        (["pod/a", "actor/pod/3", "pod/b"], (("pods", ("a", "b")), ("actors", ("pod/3",)))),
    ],
)
def test_several_types_are_separated_by_commas(
    words: list[str], expected: tuple[tuple[str, tuple[str, ...]], ...]
) -> None:
    assert asked_types(words, ("pods", "containers", "actors")) == expected


@given(st.lists(st.sampled_from(["pods", "pod/a", "actors"]) | st.text(max_size=8), min_size=1, max_size=4))
def test_any_words_are_names_or_a_usage_error(words: list[str]) -> None:
    try:
        type_, names = types_and_names(words, ("pods",))
    except click.UsageError:
        return
    assert type_ == "pods"
    assert all(names)
