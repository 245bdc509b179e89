"""The port to the spec files, which store this node's pods, as they were applied, outside the log. If the log is lost,
a new one is rebuilt from these files and from the containers' labels.

Input: a pod that is about to run or to end. Output: all stored specs that have not been removed since (`Volumes.remove`
removes a pod's whole folder). Implementation: `adapters.state_folder.specs`. The kubelet's nearest counterpart is a
static pod manifest on disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from chronolet_schemas.pod import Ending
from chronolet_schemas.podspec import Pod


class SpecRefusal(Exception):  # noqa: N818 - an answer that every caller expects
    """A spec, or the ending of its pod, cannot be stored; the message is one line that names the file."""


class KeptSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The spec of one pod with one uid. `accepted_at` is in milliseconds; `pod` is namespace/name."""

    node: str
    pod: str
    uid: str
    source: str
    digest: str
    accepted_at: int
    manifest: Pod


class KeptSpecs(NamedTuple):
    """All stored specs, and a line for each unreadable file. `endings`: the Ending of each terminating pod, by uid."""

    specs: Sequence[KeptSpec]
    unreadable: Sequence[str]
    endings: Mapping[str, Ending] = {}


class Specs(Protocol):
    """The spec files of a node. All calls are idempotent."""

    def keep(self, spec: KeptSpec) -> None:
        """Store a spec durably on disk. Raises `SpecRefusal`."""

    def end(self, uid: str, ending: Ending) -> None:
        """Store durably that the pod with this uid is terminating; no-op if it has no spec. Raises `SpecRefusal`."""

    def all(self) -> KeptSpecs:
        """Return all stored specs. Unreadable files are listed in the result and do not raise errors."""
