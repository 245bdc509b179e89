"""Builds a full and a minimal instance of every registered type from its fields; the result is always the same.

Input: a message class. Output: an instance in which no field has its default value, or one with only the required
fields. Next: `write.py`, which stores their bytes as golden files.
"""

import importlib
import pkgutil
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

import chronolet_schemas
from chronolet_schemas import registry

M = TypeVar("M")


def all_classes() -> tuple[type[Any], ...]:
    """Return every registered class in every schema module."""
    for module in pkgutil.iter_modules(chronolet_schemas.__path__):
        importlib.import_module(f"chronolet_schemas.{module.name}")
    published = chronolet_schemas.__name__ + "."  # excludes types that tests register
    return tuple(cls for cls in registry.all_classes() if cls.__module__.startswith(published))


def sample(cls: type[M]) -> M:
    """Return an instance in which no field has its default value."""
    return _struct(cls, ())


def least(cls: type[M]) -> M:
    """Return an instance with only the required fields."""
    fields = _fields(cls)
    return cls(**{field.name: _value(field.type, field.name, None, ()) for field in fields if field.required})


def _fields(cls: type[Any]) -> tuple[inspect.Field, ...]:
    described = inspect.type_info(cls)
    assert isinstance(described, inspect.StructType), cls
    return described.fields


def _struct(cls: type[M], outer: tuple[type[Any], ...]) -> M:
    """Return an instance. `outer`: the classes that contain this one; a class is not nested within itself."""
    values = {}
    for field in _fields(cls):
        default = None if field.default is msgspec.NODEFAULT else field.default
        values[field.name] = _value(field.type, field.name, default, (*outer, cls))
    return cls(**values)


def _value(kind: inspect.Type, name: str, default: object, outer: tuple[type[Any], ...]) -> Any:  # noqa: PLR0911 - a table
    """Return a value of this type that differs from `default`; an empty one or None if a class would contain itself."""
    match kind:
        case inspect.Metadata(type=inner):
            return _value(inner, name, default, outer)
        case inspect.UnionType(types=types):
            return _value(_chosen(types, outer), name, default, outer)
        case inspect.StructType(cls=cls):
            return _struct(cls, outer)
        case inspect.DictType(key_type=key, value_type=value):
            return {_value(key, name, None, outer): _value(value, name, None, outer)} if _new(value, outer) else {}
        case inspect.ListType(item_type=item):
            return [_value(item, name, None, outer)] if _new(item, outer) else []
        case inspect.VarTupleType(item_type=item):
            return (_value(item, name, None, outer),) if _new(item, outer) else ()
        case inspect.AnyType():
            return {"any": [name, 1, True]}
    return _scalar(kind, name, default)


def _scalar(kind: inspect.Type, name: str, default: object) -> Any:
    match kind:
        case inspect.StrType():
            return f"{name}-value"
        case inspect.BoolType():
            return default is not True
        case inspect.IntType():
            return 7 if default != 7 else 8
        case inspect.FloatType():
            return 2.5 if default != 2.5 else 3.5
        case inspect.NoneType():
            return None
        case inspect.LiteralType(values=values) | inspect.EnumType(cls=values):
            return [value for value in values if value != default][-1]
    raise TypeError(f"{name}: no sample for {kind}: add one here, or use a type that Redis can show")


def _new(kind: inspect.Type, outer: tuple[type[Any], ...]) -> bool:
    """Return whether the type is not one of the classes in `outer`."""
    inner = kind.type if isinstance(kind, inspect.Metadata) else kind
    return not isinstance(inner, inspect.StructType) or inner.cls not in outer


def _chosen(types: tuple[inspect.Type, ...], outer: tuple[type[Any], ...]) -> inspect.Type:
    """Return the first alternative that is neither None nor in `outer`; the type of None if there is none."""
    usable = [one for one in types if not isinstance(one, inspect.NoneType) and _new(one, outer)]
    return usable[0] if usable else inspect.NoneType()
