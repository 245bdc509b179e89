"""Hypothesis strategies for registered types, derived from their fields.

Input: a message class. Output: instances with the values that a payload may hold (docs/design.md, Messages): text,
booleans, integers below 2^53, finite floats, lists, maps. Next: `test_show`.
"""

import functools
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

LARGEST = 2**53 - 1

_numbers = st.integers(-LARGEST, LARGEST)
_floats = st.floats(allow_nan=False, allow_infinity=False)
_anything = st.recursive(
    st.text(max_size=8) | st.booleans() | _numbers | _floats,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@functools.cache
def instances(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for instances of a Struct. Optional fields may be missing."""
    described = inspect.type_info(cls)
    assert isinstance(described, inspect.StructType)
    required = {field.name: _values(field.type) for field in described.fields if field.required}
    optional = {field.name: _values(field.type) for field in described.fields if not field.required}
    # A Kubernetes type has dozens of optional fields, so only a few of them are drawn at a time.
    some = st.sets(st.sampled_from(sorted(optional)), max_size=6) if optional else st.just(set())
    chosen = some.flatmap(lambda names: st.fixed_dictionaries(required | {name: optional[name] for name in names}))
    return chosen.map(lambda fields: cls(**fields))


def _values(kind: inspect.Type) -> st.SearchStrategy[Any]:  # noqa: C901, PLR0911 - a table
    match kind:
        case inspect.Metadata(type=inner):
            return _values(inner)
        case inspect.StrType():
            return st.text(max_size=12)
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=least, le=most):
            return st.integers(-LARGEST if least is None else least, LARGEST if most is None else most)
        case inspect.FloatType():
            return _floats
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType(values=values):
            return st.sampled_from(list(values))
        case inspect.EnumType(cls=cls):
            return st.sampled_from(list(cls))
        case inspect.AnyType():
            return _anything
        case inspect.StructType(cls=cls):
            return st.deferred(lambda: instances(cls))
        case inspect.UnionType(types=types):
            return st.one_of([_values(one) for one in types])
    return _collections(kind)


def _collections(kind: inspect.Type) -> st.SearchStrategy[Any]:
    match kind:
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(_values(key), _values(value), max_size=2)
        case inspect.ListType(item_type=item):
            return st.lists(_values(item), max_size=2)
        case inspect.VarTupleType(item_type=item):
            return st.lists(_values(item), max_size=2).map(tuple)
    raise TypeError(f"{kind}: no strategy; is it something that Redis can show?")


def shown(value: Any) -> Any:
    """Return plain data as Redis shows it, with the losses that docs/design.md (Messages) and `chronolet_show_1`
    document.
    """
    if isinstance(value, dict):
        kept = {name: shown(inner) for name, inner in value.items() if inner is not None}
        return kept or {}
    if isinstance(value, list):
        return [shown(inner) for inner in value] or {}
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return float(f"{value:.14g}")


def plain(message: msgspec.Struct) -> Any:
    """Return a message's fields as plain data, as another program reads them."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(message))


def is_wide(cls: type[Any], seen: frozenset[type[Any]] = frozenset()) -> bool:
    """Whether the message is, or contains, a Struct with more than 15 fields.

    msgspec sizes the header of a map by the number of fields that a Struct has, even if it omits fields with default
    values. The header is then two bytes longer than msgpack's. Both libraries can read both forms.
    """
    return len(cls.__struct_fields__) > 15 or any(
        is_wide(inner, seen | {cls})
        for field in inspect.type_info(cls).fields  # type: ignore[union-attr]
        for inner in _parts(field.type)
        if inner not in seen
    )


def _parts(kind: inspect.Type) -> list[type[Any]]:
    match kind:
        case inspect.StructType(cls=cls):
            return [cls]
        case inspect.UnionType(types=types):
            return [part for one in types for part in _parts(one)]
        case inspect.DictType(value_type=inner) | inspect.ListType(item_type=inner):
            return _parts(inner)
        case inspect.VarTupleType(item_type=inner) | inspect.Metadata(type=inner):
            return _parts(inner)
    return []
