"""A schema module is loaded only when a type of its kind is looked up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import chronolet_schemas
from chronolet_schemas.registry import KINDS
from tests.support.scratch import HANG_SECONDS

CODE = """
import sys
from chronolet_schemas import registry
print(registry.class_of("qos.CgroupReady").__name__, registry.class_of("qos.Nothing"), registry.class_of("os.Nothing"))
print(*sorted(name.removeprefix("chronolet_schemas.") for name in sys.modules if name in {modules!r}))
"""


def test_a_lookup_loads_only_the_module_of_its_kind() -> None:
    modules = {f"chronolet_schemas.{kind}" for kind in KINDS}
    ended = subprocess.run(
        [sys.executable, "-c", CODE.format(modules=modules)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=True,
    )
    assert ended.stdout.splitlines() == ["CgroupReady None None", "qos"]


def test_every_module_that_registers_classes_is_a_kind() -> None:
    (folder,) = map(Path, chronolet_schemas.__path__)
    registering = {
        path.relative_to(folder).parts[0].removesuffix(".py")
        for path in folder.rglob("*.py")
        if "\n@registered\n" in path.read_text()
    }
    assert registering == KINDS
