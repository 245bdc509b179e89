"""Pods as plain data and back, and the digest that names a spec.

Comes in: the types of this package, or the maps, lists, texts and numbers that JSON knows. Goes out: the other form.
A value equal to its field's default is never written, whether it was given or not, so equal pods look equal.
Next: `defaults`; events and labels carry the digest; `get -o yaml` shows the plain form.
"""

from __future__ import annotations

import hashlib
from functools import cache
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


class _Field(NamedTuple):
    name: str
    key: str
    default: Any


@cache
def _fields(part: type[Part]) -> tuple[_Field, ...]:
    return tuple(
        _Field(
            field.name,
            field.encode_name,
            field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory(),
        )
        for field in msgspec.structs.fields(part)
    )


def plain(value: Any) -> Any:
    """Any value of a field as plain data: Structs become maps with the API's names, tuples become lists."""
    if isinstance(value, Part):
        given = ((field.key, getattr(value, field.name), field.default) for field in _fields(type(value)))
        return {key: plain(held) for key, held, default in given if held != default}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def to_plain(pod: Pod) -> Object:
    """The pod as a map that JSON, YAML and msgpack can write; always with `apiVersion` and `kind`."""
    return {"apiVersion": pod.api_version, "kind": pod.kind, **plain(pod)}


def from_plain(plain_pod: Object) -> Pod:
    """The pod that `to_plain` wrote. Raises msgspec.ValidationError for a wrong type; unknown keys are passed over."""
    return msgspec.convert(plain_pod, Pod)


def digest(pod: Pod) -> str:
    """What was applied, in 32 hex digits: the same for the same content, whatever an API server or we wrote into it."""
    content = to_plain(pod)
    metadata = {key: value for key, value in content.get("metadata", {}).items() if key not in _WRITTEN_BY_SERVERS}
    text = msgspec.json.encode({**content, "metadata": metadata}, order="sorted")
    return hashlib.sha256(text).hexdigest()[:DIGEST_LENGTH]
