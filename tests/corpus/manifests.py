"""The corpus: real manifests from a folder next to the repository, with their images replaced by small local ones.

Input: ../shared/manifests. Output: each file's text with its images replaced, all else byte for byte; batches
that can be applied to one node. Next: `test_reading`, `test_running`.
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
    """The text with each of these images replaced where it is the value of `image`."""
    for image in named:
        text = _value(image).sub(rf"\g<1>{stand_in(image)}\g<2>", text)
    return text


def _value(image: str) -> re.Pattern[str]:
    return re.compile(rf'(?m)^([ -]*image: *"?){re.escape(image)}("?,? *)$')


def content(text: str) -> Any:
    """The document in the text, read by a YAML parser that is not the product's."""
    (only,) = (one for one in yaml.safe_load_all(text) if one is not None)
    return only


def batches(pods: dict[str, Any]) -> list[list[str]]:
    """The files in as few batches as possible, such that no two pods of a batch share name and namespace."""
    found: list[dict[tuple[str, str], str]] = []
    for file, pod in pods.items():
        key = (pod["metadata"].get("namespace", ""), pod["metadata"]["name"])
        open_batch = next((batch for batch in found if key not in batch), None)
        if open_batch is None:
            open_batch = {}
            found.append(open_batch)
        open_batch[key] = file
    return [list(batch.values()) for batch in found]
