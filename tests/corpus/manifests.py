"""The corpus: real manifests from a folder next to the repository, with their images replaced by small local ones.

Input: ../shared/manifests. Output: the text of each file, in which only the images are replaced; batches of files that
can be applied to one node. Next: `test_reading`, `test_running`.
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
    """Return the images that each file names, by file name, according to the corpus's index."""
    index = json.loads((FOLDER / "index.json").read_text())
    return {Path(one["file"]).name: one["images"] for one in index}


def paths() -> dict[str, Path]:
    """Return the path of each file by its name. No two files of the corpus have the same name."""
    index = json.loads((FOLDER / "index.json").read_text())
    return {Path(one["file"]).name: FOLDER / one["file"] for one in index}


def rewritten(text: str, named: Iterable[str]) -> str:
    """Return the text with each of these images replaced where it is the value of `image`."""
    for image in named:
        text = _value(image).sub(rf"\g<1>{stand_in(image)}\g<2>", text)
    return text


def _value(image: str) -> re.Pattern[str]:
    return re.compile(rf'(?m)^([ -]*image: *"?){re.escape(image)}("?,? *)$')


def content(text: str) -> Any:
    """Parse the document in the text with a YAML parser other than the product's."""
    (only,) = (one for one in yaml.safe_load_all(text) if one is not None)
    return only


def batches(pods: dict[str, Any]) -> list[list[str]]:
    """Divide the files into as few batches as possible, so that no two pods in a batch share name and namespace."""
    found: list[dict[tuple[str, str], str]] = []
    for file, pod in pods.items():
        key = (pod["metadata"].get("namespace", ""), pod["metadata"]["name"])
        open_batch = next((batch for batch in found if key not in batch), None)
        if open_batch is None:
            open_batch = {}
            found.append(open_batch)
        open_batch[key] = file
    return [list(batch.values()) for batch in found]
