"""Draws the diagrams in docs/diagrams: `python -m scripts.diagrams`.

Input: the transition tables in docstrings of actors/chronolet, and docs/diagrams/*.txt (sequences). Output: one SVG for
each. tests/docs/test_diagrams.py draws them again and compares the results.
"""

from __future__ import annotations

from pathlib import Path

from scripts.diagrams import sequences, states, tables

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "diagrams"


def drawings(root: Path = ROOT) -> dict[str, str]:
    """Return the text of every SVG, by file name."""
    found = {f"{one.subject}.svg": states.draw(one) for one in tables.found(root / "actors" / "chronolet")}
    for path in sorted((root / "docs" / "diagrams").glob("*.txt")):
        found[f"{path.stem}.svg"] = sequences.draw(sequences.parse(path.read_text()))
    return found


def main() -> None:
    for name, text in drawings().items():
        (FOLDER / name).write_text(text)
        print(f"docs/diagrams/{name}")


if __name__ == "__main__":
    main()
