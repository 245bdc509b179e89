"""Stores specs as JSON files `pods/<uid>/pod.json` below the state folder, plus `end.json` for a terminating pod. Only
the files' owner can read them.

Input: specs. Output: files, written atomically, and their content. Next: `node.adoption` reads them.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from chronolet.adapters.state_folder.whole_files import write_whole
from chronolet.ports.pods.specs import KeptSpec, KeptSpecs, SpecRefusal
from chronolet_schemas.pod import Ending

NAME = "pod.json"
END = "end.json"
_FOLDER_MODE = 0o750


class SpecFiles:
    """Implements `ports.pods.specs.Specs` in a state folder."""

    def __init__(self, root: Path) -> None:
        self._pods = root / "pods"

    def keep(self, spec: KeptSpec) -> None:
        _write(self._folder(spec.uid) / NAME, spec)

    def end(self, uid: str, ending: Ending) -> None:
        folder = self._folder(uid)
        if (folder / NAME).exists():
            _write(folder / END, ending)

    def _folder(self, uid: str) -> Path:
        folder = self._pods / uid
        if folder.parent != self._pods or folder.name in ("", ".."):
            raise SpecRefusal(f"{uid!r}: is not a valid folder name")
        return folder

    def all(self) -> KeptSpecs:
        specs, unreadable, endings = list[KeptSpec](), list[str](), dict[str, Ending]()
        for path in sorted(self._pods.glob(f"*/{NAME}")):
            try:
                specs.append(_read(path))
                path = path.with_name(END)  # noqa: PLW2901 - later errors refer to this file
                if ending := _ending(path):
                    endings[specs[-1].uid] = ending
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
                unreadable.append(f"{path}: {error}")
        return KeptSpecs(specs, unreadable, endings)


def _write(path: Path, record: KeptSpec | Ending) -> None:
    content = msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
    try:
        if _content(path) != content:
            path.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
            write_whole(path, content)
    except OSError as error:
        raise SpecRefusal(f"{path}: cannot be written: {error.strerror or error}") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _ending(path: Path) -> Ending | None:
    content = _content(path)
    return msgspec.json.decode(content, type=Ending) if content else None


def _read(path: Path) -> KeptSpec:
    spec = msgspec.json.decode(path.read_bytes(), type=KeptSpec)
    if spec.uid != path.parent.name or spec.pod != spec.manifest.key:
        raise ValueError(f"names pod {spec.pod} with uid {spec.uid}, which does not match its folder and manifest")
    return spec
