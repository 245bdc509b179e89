"""Published types never change: all later releases read and write the bytes of an earlier release identically."""

import json
from typing import Any

import msgspec
import pytest

from chronolet_schemas import codec, registry, upcasting
from chronolet_schemas.envelope import Command, Event
from tests.golden.samples import all_classes, sample
from tests.golden.write import FOLDER, path_of
from tests.kernel.storage.instances import is_wide, plain

FILES = sorted(FOLDER.glob("*.json"))
CLASSES = all_classes()


def read(path: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def base(cls: type[Any]) -> type[Event] | type[Command]:
    return Event if issubclass(cls, Event) else Command


def test_there_are_golden_files() -> None:
    assert len(FILES) >= len(CLASSES) > 50


@pytest.mark.parametrize("cls", CLASSES, ids=registry.type_of)
def test_every_type_has_a_golden_file(cls: type[Any]) -> None:
    assert path_of(cls).exists(), f"{path_of(cls).name} is missing: python -m tests.golden.write"
    assert read(path_of(cls))["type"] == registry.type_of(cls)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("form", ["full", "least"])
def test_golden_bytes_are_read_and_written_again(path: Any, form: str) -> None:
    """Fail for a deleted or changed type: a change needs a new version with an upcaster. A new optional field may pass.

    Files of older versions are read through their upcasters.
    """
    content = read(path)
    name, version = codec.split_type(content["type"])
    assert path.stem == content["type"]
    cls = registry.class_of(name)
    assert cls is not None, f"{name} was published: it cannot be deleted"
    written = bytes.fromhex(content[form]["bytes"])
    message = codec.decode(content["type"], written, base(cls))
    if version == cls.VERSION:
        assert plain(message) == content[form]["data"]
        assert codec.encode(message) == written or is_wide(cls)


def test_every_field_is_in_a_golden_file_or_has_a_default() -> None:
    for cls in CLASSES:
        seen = read(path_of(cls))["full"]["data"].keys()
        late = {field.name for field in msgspec.structs.fields(cls) if field.encode_name not in seen}
        assert late <= {field.name for field in msgspec.structs.fields(cls) if not field.required}, cls


@pytest.mark.parametrize("cls", CLASSES, ids=registry.type_of)
def test_full_samples_are_full(cls: type[Any]) -> None:
    """No field of the type is omitted because it has its default value."""
    assert len(plain(sample(cls))) == len(cls.__struct_fields__)


def test_older_versions_have_upcasters() -> None:
    for cls in CLASSES:
        name, newest = codec.split_type(registry.type_of(cls))
        for version in range(1, newest):
            assert (name, version) in upcasting.UPCASTERS
            assert (FOLDER / f"{name}@{version}.json").exists()
