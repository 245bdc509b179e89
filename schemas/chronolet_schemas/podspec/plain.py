"""Converts Pods to plain data and back, and computes the digest that identifies a spec.

Input: the types of this package, or JSON values (objects, arrays, strings, numbers, booleans). Output: the other form.
A value equal to its field's default is never written, even if it was given, so equal pods have equal plain forms. Next:
`defaults`; events and labels contain the digest; `get -o yaml` shows the plain form.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from chronolet_schemas.podspec.base import Object, Part
from chronolet_schemas.podspec.pod import Pod

DIGEST_LENGTH = 32

_WRITTEN_BY_SERVERS = frozenset(
    {
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    }
)


_SCALARS = frozenset({str, int, bool, float, type(None)})


class _Fields(NamedTuple):
    """The fields of a type: their names in the API, a function that reads all of them from a value, their defaults."""

    keys: tuple[str, ...]
    read: Callable[[Part], tuple[Any, ...]]
    defaults: tuple[Any, ...]


@cache
def _fields(part: type[Part]) -> _Fields:
    """Return the fields of a type. `msgspec.structs.fields` is not used because it also evaluates the annotations,
    which takes longer than converting all of a command's pods.
    """
    names, keys, defaults = part.__struct_fields__, part.__struct_encode_fields__, part.__struct_defaults__
    required = (msgspec.NODEFAULT,) * (len(names) - len(defaults))
    # With one name, attrgetter returns the value itself, not a tuple.
    read = attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)
    return _Fields(keys, read, tuple(map(_default, (*required, *defaults))))


def _default(value: Any) -> Any:
    """Return the default of a field; a factory is called."""
    factory = getattr(value, "factory", None)
    return value if factory is None else factory()


def plain(value: Any) -> Any:
    """Convert any field value to plain data: Structs become maps with the API's names, tuples become lists."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if isinstance(value, Part):
        keys, read, defaults = _fields(type(value))
        given = zip(keys, read(value), defaults, strict=True)
        return {key: plain(held) for key, held, default in given if held != default}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def to_plain(pod: Pod) -> Object:
    """Return the pod as a map for JSON, YAML and msgpack; it always contains `apiVersion` and `kind`."""
    return {"apiVersion": pod.api_version, "kind": pod.kind, **plain(pod)}


def from_plain(plain_pod: Object) -> Pod:
    """Return the pod from the output of `to_plain`. Raises msgspec.ValidationError for a wrong type; ignores unknown
    keys.
    """
    return msgspec.convert(plain_pod, Pod)


def digest(pod: Pod) -> str:
    """Return the digest of the applied content, 32 hex digits; it ignores fields that an API server or the agent fills
    in.
    """
    import hashlib  # noqa: PLC0415 - loads OpenSSL, which readers of a log do not need

    content = to_plain(pod)
    metadata = {key: value for key, value in content.get("metadata", {}).items() if key not in _WRITTEN_BY_SERVERS}
    text = msgspec.json.encode({**content, "metadata": metadata}, order="sorted")
    return hashlib.sha256(text).hexdigest()[:DIGEST_LENGTH]
