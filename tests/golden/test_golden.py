"""Published types never change: the bytes that a release once wrote are read, and written, the same for ever."""

import json
from typing import Any

import pytest

from chronolet_schemas import codec, registry, upcasting
from chronolet_schemas.envelope import Command, Event
from tests.golden.samples import all_classes, sample
from tests.golden.write import FOLDER, golden, path_of
from tests.kernel.storage.instances import plain

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
def test_every_type_has_a_golden_file_with_its_bytes(cls: type[Any]) -> None:
    """A new type: run `python -m tests.golden.write`. A changed one: make it the next version, with an upcaster."""
    assert path_of(cls).exists(), f"{path_of(cls).name} is missing: python -m tests.golden.write"
    assert read(path_of(cls)) == golden(cls)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("form", ["full", "least"])
def test_every_golden_file_can_be_read(path: Any, form: str) -> None:
    """Old versions too, through their upcasters; a deleted type fails here."""
    content = read(path)
    name, version = codec.split_type(content["type"])
    assert path.stem == content["type"]
    cls = registry.class_of(name)
    assert cls is not None, f"{name} was published: it cannot be deleted"
    message = codec.decode(content["type"], bytes.fromhex(content[form]["bytes"]), base(cls))
    if version == cls.VERSION:
        assert plain(message) == content[form]["data"]


@pytest.mark.parametrize("cls", CLASSES, ids=registry.type_of)
def test_full_samples_are_full(cls: type[Any]) -> None:
    """No field of the type itself is left out for standing at its default."""
    assert len(plain(sample(cls))) == len(cls.__struct_fields__)


def test_older_versions_have_upcasters() -> None:
    for cls in CLASSES:
        name, newest = codec.split_type(registry.type_of(cls))
        for version in range(1, newest):
            assert (name, version) in upcasting.UPCASTERS
            assert (FOLDER / f"{name}@{version}.json").exists()
