"""Write the golden file of each registered type that has none: `python -m tests.golden.write`.

A published type never changes, so its file is never rewritten: a change needs a new version with an upcaster, and the
old version's file stays. `--anew` rewrites all files, for types that no release has published yet.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from chronolet_schemas import codec, registry
from tests.golden.samples import all_classes, least, sample
from tests.kernel.storage.instances import plain

FOLDER = Path(__file__).parent / "events"


def path_of(cls: type[Any]) -> Path:
    return FOLDER / f"{registry.type_of(cls)}.json"


def golden(cls: type[Any]) -> dict[str, Any]:
    """Return the content of a golden file: a full and a minimal message, both as bytes and as readable data."""
    messages = {"full": sample(cls), "least": least(cls)}
    return {"type": registry.type_of(cls)} | {
        name: {"data": plain(message), "bytes": codec.encode(message).hex()} for name, message in messages.items()
    }


def write(cls: type[Any]) -> None:
    path_of(cls).write_text(json.dumps(golden(cls), indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anew", action="store_true", help="rewrite existing files (unpublished types only)")
    anew = parser.parse_args().anew
    FOLDER.mkdir(exist_ok=True)
    if anew:
        for path in FOLDER.glob("*.json"):
            path.unlink()
    for cls in all_classes():
        if not path_of(cls).exists():
            write(cls)
            print(path_of(cls))  # noqa: T201


if __name__ == "__main__":
    main()
