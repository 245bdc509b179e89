"""Writes the indexes and checkpoints of the node's archive, for the keeper.

Input: the archive of the log's current run. Output: a line for each archive file that lacked something. Next: `keeper`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from chronolet.history.derived.checkpoint import KINDS
from chronolet.history.derived.code import version_of
from chronolet.history.derived.upkeep import Upkeep
from chronolet.kernel.kind import Kind
from chronolet.kernel.log.archive import Archive


class Indexes:
    """The upkeep of the archive of the current run.

    Made when the process starts, it loads all kinds and notes of which code they are: an upgrade may later replace the
    files under the running process, and a checkpoint must not name code that has not folded it.
    """

    def __init__(self) -> None:
        self._kinds = _pure_kinds()
        for kind in self._kinds:
            version_of(kind)
        self._upkeep: Upkeep | None = None
        self._problems: frozenset[str] = frozenset()

    def __call__(self, archive: Archive, pause: Callable[[], None]) -> Iterable[str]:
        """Write what the archive lacks; yield a line for each file and each new problem. See `Upkeep.run`."""
        if self._upkeep is None or self._upkeep.archive.run != archive.run:
            self._upkeep = Upkeep(archive, lambda: self._kinds)
        problems = set()
        for outcome in self._upkeep.run(pause):
            line = f"{outcome.file}: {outcome.problem or 'indexed'}"
            if outcome.problem:
                problems.add(line)
            if line not in self._problems:
                yield line
        self._problems = frozenset(problems)


def _pure_kinds() -> Sequence[Kind[Any]]:
    """Return all kinds without effects, whichever process hosts them."""
    return [importlib.import_module(f"chronolet.{name}.actor").kind() for name in KINDS]
