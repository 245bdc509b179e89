"""Exact parsing of Kubernetes' resource.Quantity: forms, suffixes, rounding, refusals."""

import contextlib
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.rules.resources.quantities import QuantityError, cpu_milli, memory_bytes, parse, whole

REFUSED = [
    *["", " ", "1 ", " 1", ".", "+", "-", "m", "Mi", "1mi", "1KI", "1ki", "1K", "1mm", "1Zi", "1e", "1e+", "1e1.5"],
    *["1e3Mi", "0x10", "1_000", "1,5", "--1", "1.2.3", "inf", "nan", "1\n", "\u0661", "1e41", "1e-41"],
    *["1" * 65, "1e" + "9" * 60],
]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("100n", Fraction(1, 10**7)),
        ("100u", Fraction(1, 10**4)),
        ("100m", Fraction(1, 10)),
        ("1k", 1000),
        ("1M", 10**6),
        ("1G", 10**9),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("1Ki", 1024),
        ("1Mi", 2**20),
        ("1Gi", 2**30),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e+3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("12.5e1", 125),
        ("-64Mi", -(2**26)),
        ("007", 7),
    ],
)
def test_the_value_is_exact(text: str, value: Fraction | int) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    REFUSED,
)
def test_any_other_text_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse(text)
    assert repr(text[:64])[:-1] in str(refused.value)


@pytest.mark.parametrize(
    ("text", "milli"),
    [("1", 1000), ("100m", 100), ("0.1", 100), ("1.0005", 1001), ("1n", 1), ("0", 0), ("2k", 2_000_000), ("-1m", -1)],
)
def test_cpus_in_thousandths_are_rounded_up(text: str, milli: int) -> None:
    assert cpu_milli(text) == milli


@pytest.mark.parametrize(
    ("text", "size"), [("64Mi", 67108864), ("1.5", 2), ("100m", 1), ("128974848", 128974848), ("129e6", 129000000)]
)
def test_bytes_are_rounded_up(text: str, size: int) -> None:
    assert memory_bytes(text) == size


def test_values_above_what_redis_can_count_are_out_of_range() -> None:
    assert whole("8Pi") == 2**53
    for text in ("9007199254740993", "8Ei", "-8Ei"):
        with pytest.raises(QuantityError, match="out of range"):
            whole(text)
    with pytest.raises(QuantityError, match="out of range"):
        cpu_milli("9007199254741")


@given(st.decimals(min_value=0, max_value=10**9, places=6), st.sampled_from(["", "m", "k", "Mi", "Ei"]))
def test_parsing_is_linear_in_the_suffix(number: Decimal, suffix: str) -> None:
    assert parse(f"{number:f}{suffix}") == Fraction(number) * parse(f"1{suffix}")


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    with contextlib.suppress(QuantityError):
        assert isinstance(parse(text), Fraction)
