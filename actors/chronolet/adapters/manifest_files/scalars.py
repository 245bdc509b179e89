"""Resolve plain YAML scalars as Kubernetes's YAML library does. Pure.

Input: the text of an unquoted scalar. Output: null, boolean, integer, float, or the text itself. Dates and times remain
text. Corresponds to sigs.k8s.io/yaml (resolve.go of its YAML 1.1 parser), followed by a round trip through JSON.
"""

from __future__ import annotations

import re
from typing import Final

Scalar = None | bool | int | float | str

_LONGEST_INTEGER = 40

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}

_PREFIXED = re.compile(r"[-+]?0(?:[xX][0-9a-fA-F]+|[oO]?[0-7]+|[bB][01]+)")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES: Final = {"x": 16, "o": 8, "b": 2}

TAGS: Final = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
TEXT_TAGS: Final = frozenset({"tag:yaml.org,2002:str", "!"})


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if _DECIMAL.fullmatch(digits) and len(digits) <= _LONGEST_INTEGER:
        return int(digits)
    if _PREFIXED.fullmatch(digits) and len(digits) <= _LONGEST_INTEGER:
        return _prefixed(digits)
    return whole(float(digits)) if _FLOAT.fullmatch(digits) else text


def whole(number: float) -> int | float:
    """Convert a float without a fraction to an integer, as the round trip through JSON does."""
    return int(number) if number.is_integer() and abs(number) < 2**63 else number


def key_text(key: Scalar) -> str | None:
    """Return a map's key as JSON would spell it; None if it is null, which cannot be a key."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return None if key is None else str(key)


def _prefixed(digits: str) -> int:
    sign = -1 if digits[0] == "-" else 1
    body = digits.lstrip("+-")
    base = _BASES.get(body[1].lower())
    return sign * (int(body[2:], base) if base else int(body, 8))
