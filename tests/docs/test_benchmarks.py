"""The table of benchmarks in the README has every benchmark of `scripts/bench`."""

from __future__ import annotations

import ast

from tests.docs.markdown import ROOT, Page, spans_of


def benches() -> list[str]:
    """Return the names that `scripts/bench` accepts. They are read, not imported: the benchmarks import the whole
    agent.
    """
    tree = ast.parse((ROOT / "tests" / "bench" / "__main__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "BENCHES":
            assert isinstance(node.value, ast.Dict)
            return [str(key.value) for key in node.value.keys if isinstance(key, ast.Constant)]
    return []


def test_the_readme_has_every_benchmark() -> None:
    rows = next(rows for rows in Page(ROOT / "README.md").tables() if rows[0][1].content == "what it measures")
    names = sorted(span.split()[0] for row in rows[1:] for span in spans_of(row[0]))
    assert names == sorted(benches())
