"""No import cycles exist between files, not even through imports for types only or inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    ROOT / "actors" / "chronolet",
    ROOT / "actors" / "chronolet_sample_plugin",
    ROOT / "schemas" / "chronolet_schemas",
)


def files() -> dict[str, Path]:
    """Return the files of all modules and packages, by name."""
    found: dict[str, Path] = {}
    for package in PACKAGES:
        for file in package.rglob("*.py"):
            parts = file.relative_to(package.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(code: str, modules: Mapping[str, object]) -> Iterator[str]:
    """Yield those of `modules` that the code imports anywhere in the file. The import of a name from a package counts
    as an import of the package unless the name is itself one of `modules`, because `__init__` provides the name.
    """
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in names if name in modules)
            if node.module in modules and not all(name in modules for name in names):
                yield node.module


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the modules of one import cycle; an empty list if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    found = files()
    graph = {name: set(imported(file.read_text(), found)) - {name} for name, file in found.items()}
    assert sum(map(len, graph.values())) > 1_500
    assert cycle(graph) == []


@pytest.mark.parametrize(
    "code", ["import b", "from a import b\nif TYPE_CHECKING:\n    import b", "def f():\n    from b import name"]
)
def test_a_circle_is_found(code: str) -> None:
    graph = {"a": set(imported(code, {"a": 1, "b": 1})) - {"a"}, "b": {"a"}}
    assert set(cycle(graph)) == {"a", "b"}
