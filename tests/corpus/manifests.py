"""The corpus: real manifests, which lie beside the repository and nowhere in it, with images that the machine has.

Input: ../shared/manifests. Output: each file's text with its images replaced, all else byte for byte; batches
that one node takes at once. Next: `test_reading`, `test_running`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.corpus.images import stand_in

FOLDER = Path(__file__).parents[3] / "shared" / "manifests"


def images() -> dict[str, list[str]]:
    """File name -> the images that it names, as the corpus's own index has them."""
    index = json.loads((FOLDER / "index.json").read_text())
    return {Path(one["file"]).name: one["images"] for one in index}


def paths() -> dict[str, Path]:
    """File name -> path. No two files of the corpus have the same name."""
    index = json.loads((FOLDER / "index.json").read_text())
    return {Path(one["file"]).name: FOLDER / one["file"] for one in index}


def rewritten(text: str, named: Iterable[str]) -> str:
    """The text with each of these images replaced where it stands as the value of `image`."""
    for image in named:
        text = _value(image).sub(rf"\g<1>{stand_in(image)}\g<2>", text)
    return text


def _value(image: str) -> re.Pattern[str]:
    return re.compile(rf'(?m)^([ -]*image: *"?){re.escape(image)}("?,? *)$')


def content(text: str) -> Any:
    """What the text says, read by a YAML parser that is not the product's."""
    (only,) = (one for one in yaml.safe_load_all(text) if one is not None)
    return only


def batches(pods: dict[str, Any]) -> list[list[str]]:
    """The files in as few batches as there may be: in none of them two pods have one name and namespace."""
    made: list[dict[tuple[str, str], str]] = []
    for file, pod in pods.items():
        key = (pod["metadata"].get("namespace", ""), pod["metadata"]["name"])
        free = next((batch for batch in made if key not in batch), None)
        if free is None:
            free = {}
            made.append(free)
        free[key] = file
    return [list(batch.values()) for batch in made]
