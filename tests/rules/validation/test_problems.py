"""The basic checks used by validation, with values at their bounds."""

from chronolet.rules.validation.problems import Problem, at_least, repeated, required, within


def test_bounds_belong_to_the_range() -> None:
    assert [*at_least("p", 0, 0), *within("p", 1, 1, 2), *within("p", 2, 1, 2)] == []
    assert list(within("p", 3, 1, 2)) == [Problem("p", "3 is above 2")]
    assert list(within("p", 0, 1, 2)) == [Problem("p", "0 is below 1")]


def test_a_missing_text_is_reported_once() -> None:
    assert list(required("p", "x", "a name")) == []
    assert list(required("p", "", "a name")) == [Problem("p", "missing, expected a name")]


def test_each_repetition_names_the_first() -> None:
    assert list(repeated("p", "name", ["a", "", "", "a", "b", "a"])) == [
        Problem("p[3].name", "'a' is already used by p[0]"),
        Problem("p[5].name", "'a' is already used by p[0]"),
    ]
