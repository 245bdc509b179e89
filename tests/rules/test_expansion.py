"""Expansion of `$(NAME)` by the kubelet's rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.rules.expansion import MissingVariableError, environment, expand, expand_all, expand_known
from chronolet_schemas.podspec import EnvVar

KNOWN = {"A": "1", "B": "$(A)", "C": "", "D": "$$"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("", ""),
        ("plain", "plain"),
        ("$(A)", "1"),
        ("x$(A)y$(A)z", "x1y1z"),
        ("$(B)", "$(A)"),  # an inserted value is not expanded again
        ("$(C)|", "|"),
        ("$(D)", "$$"),
        ("$(X)", "$(X)"),
        ("$()", "$()"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$$", "$"),
        ("$$$", "$$"),
        ("$", "$"),
        ("$A", "$A"),
        ("${A}", "${A}"),
        ("$(A", "$(A"),
        ("$(A$(A)", "$(A$(A)"),  # one reference, to `A$(A`
        ("$((A))", "$((A))"),
        ("$( A )", "$( A )"),
        ("a$", "a$"),
        ("$(A)$", "1$"),
        ("$(a)", "$(a)"),
        ("$(A\n)", "$(A\n)"),
    ],
)
def test_expand(text: str, expanded: str) -> None:
    assert expand(text, KNOWN) == expanded


def test_a_variable_can_use_earlier_ones() -> None:
    variables = (
        EnvVar(name="FIRST", value="1"),
        EnvVar(name="LATER", value="$(FIRST) $(LAST) $(LATER)"),
        EnvVar(name="LAST", value="$$(FIRST)"),
    )
    assert environment(variables) == {"FIRST": "1", "LATER": "1 $(LAST) $(LATER)", "LAST": "$(FIRST)"}


def test_the_last_of_equal_names_wins_and_may_use_the_earlier_one() -> None:
    variables = (EnvVar(name="PATH", value="/bin"), EnvVar(name="PATH", value="/opt:$(PATH)"))
    assert environment(variables) == {"PATH": "/opt:/bin"}


def test_a_command_is_expanded_word_by_word() -> None:
    assert expand_all(("sh", "-c", "echo $(A) $A"), KNOWN) == ("sh", "-c", "echo 1 $A")


@given(st.text(st.sampled_from("$()AB"), max_size=12))
def test_no_variables_change_nothing_but_escapes(text: str) -> None:
    assert expand(text.replace("$", "$$"), KNOWN) == text
    if "$$" not in text:
        assert expand(text, {}) == text


def test_a_missing_variable_is_an_error_where_all_must_be_known() -> None:
    assert expand_known("a/$(A)/$$(B)", {"A": "1"}) == "a/1/$(B)"
    with pytest.raises(MissingVariableError, match='missing value for "B"'):
        expand_known("$(A)$(B)", {"A": "1"})
