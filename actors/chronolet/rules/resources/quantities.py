"""Parses resource quantities such as `100m`, `1.5`, `64Mi`, `2e3` exactly. Pure.

Input: text from a manifest. Output: an exact fraction, milli CPUs, or bytes; `QuantityError` for anything else.
Source: staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go, suffix.go.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final

from chronolet_schemas.podspec import LARGEST_INTEGER

_LONGEST_TEXT = 64
_LARGEST_EXPONENT = 40

_SUFFIXES: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}

_SHAPE = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[a-zA-Z]*))"
)


class QuantityError(ValueError):
    """The text is not a quantity, or is out of range; the message states what was expected."""


def parse(text: str) -> Fraction:
    """Return the exact value of a quantity. Raises QuantityError if the text is not a quantity, is longer than 64
    characters, or has an exponent above 40 or below -40.
    """
    shape = _SHAPE.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if shape is None or not (shape["whole"] or shape["part"]):
        raise QuantityError(f"{_shown(text)} is not a quantity, expected a number such as 1.5, 100m, 64Mi or 1e3")
    digits = (shape["whole"] or "") + (shape["part"] or "")
    number = Fraction(int(digits), 10 ** len(shape["part"] or ""))
    return (-number if shape["sign"] == "-" else number) * _factor(text, shape["suffix"], shape["exponent"])


def cpu_milli(text: str) -> int:
    """Parse a quantity into milli CPUs, rounded up as the kubelet does: `0.0001` is 1. Raises QuantityError."""
    return _bounded(text, math.ceil(parse(text) * 1000))


def whole(text: str) -> int:
    """Parse a quantity into whole units (bytes of memory, a count of devices), rounded up. Raises QuantityError."""
    return _bounded(text, math.ceil(parse(text)))


memory_bytes = whole


def _factor(text: str, suffix: str | None, exponent: str | None) -> Fraction:
    if exponent is not None:
        if abs(int(exponent)) > _LARGEST_EXPONENT:
            raise QuantityError(f"{_shown(text)} is out of range")
        return Fraction(10) ** int(exponent)
    if suffix not in _SUFFIXES:
        known = " ".join(name for name in _SUFFIXES if name)
        raise QuantityError(f"{_shown(text)} has the unknown suffix {suffix!r}, expected one of {known}")
    return _SUFFIXES[suffix]


def _bounded(text: str, value: int) -> int:
    if abs(value) > LARGEST_INTEGER:
        raise QuantityError(f"{_shown(text)} is out of range")
    return value


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _LONGEST_TEXT else repr(text[:_LONGEST_TEXT]) + "..."
