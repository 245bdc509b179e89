"""Hypothesis strategies for arbitrary Pods, derived from the types: a new field in the schema needs no change here."""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from chronolet_schemas.podspec import LARGEST_INTEGER, QUANTITY, Pod

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
QUANTITIES = st.sampled_from(["0", "1", "100m", "64Mi", "1.5", "2e3"])
INTEGERS = st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)

LOOSE = st.dictionaries(
    TEXT,
    st.recursive(
        st.booleans() | INTEGERS | TEXT | st.floats(allow_nan=False, allow_infinity=False).filter(lambda f: f % 1 != 0),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
        max_leaves=4,
    ),
    max_size=3,
)


def plain_pods() -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for Pods as maps, in which any field may be absent."""
    return _values(inspect.type_info(Pod))


def pods() -> st.SearchStrategy[Pod]:
    return plain_pods().map(lambda plain: msgspec.convert(plain, Pod))


@cache
def _struct(part: type) -> st.SearchStrategy[dict[str, Any]]:
    info = inspect.type_info(part)
    assert isinstance(info, inspect.StructType)
    return st.fixed_dictionaries({}, optional={field.encode_name: _values(field.type) for field in info.fields})


def _values(info: inspect.Type) -> st.SearchStrategy[Any]:
    return _SIMPLE[type(info)] if type(info) in _SIMPLE else _compound(info)


def _compound(info: Any) -> st.SearchStrategy[Any]:
    rules: dict[type[inspect.Type], Callable[[], st.SearchStrategy[Any]]] = {
        inspect.Metadata: lambda: QUANTITIES if (info.extra or {}).get(QUANTITY) else _values(info.type),
        inspect.UnionType: lambda: st.one_of(
            *(_values(kind) for kind in info.types if not isinstance(kind, inspect.NoneType))
        ),
        inspect.StructType: lambda: _struct(info.cls),
        inspect.VarTupleType: lambda: st.lists(_values(info.item_type), max_size=2),
        inspect.DictType: lambda: _map(info.value_type),
        inspect.IntType: lambda: st.integers(info.ge, info.le),
        inspect.LiteralType: lambda: st.sampled_from(info.values),
    }
    return rules[type(info)]()


def _map(values: inspect.Type) -> st.SearchStrategy[Any]:
    return LOOSE if isinstance(values, inspect.AnyType) else st.dictionaries(TEXT, _values(values), max_size=2)


_SIMPLE: dict[type[inspect.Type], st.SearchStrategy[Any]] = {inspect.StrType: TEXT, inspect.BoolType: st.booleans()}
