"""The pods of this node as they were applied, kept beside the log: with the labels of their containers they are what a
new log begins with when the old one is lost.

Comes in: a pod that is about to run, or to end. Goes out: all that were kept and not removed since (`volumes.remove`
takes a pod's folder as a whole). Implementation: `adapters.kept_specs`. Nearest in the kubelet: static pod manifests,
which lie on the disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from chronolet_schemas.pod import Ending
from chronolet_schemas.podspec import Pod


class SpecRefusal(Exception):  # noqa: N818 - an answer that every caller expects
    """A spec cannot be kept; the message is one line that names the file."""


class KeptSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One pod of a node under one uid. `accepted_at` in milliseconds; `pod` is namespace/name."""

    node: str
    pod: str
    uid: str
    source: str
    digest: str
    accepted_at: int
    manifest: Pod


class KeptSpecs(NamedTuple):
    """All that was kept, and a line for each file that cannot be read. `endings` by uid, for pods that were ending."""

    specs: Sequence[KeptSpec]
    unreadable: Sequence[str]
    endings: Mapping[str, Ending] = {}


class Specs(Protocol):
    """Every call may be repeated at any time."""

    def keep(self, spec: KeptSpec) -> None:
        """See that this spec is on the disk, whatever happens next. `SpecRefusal` if it cannot be."""

    def end(self, uid: str, ending: Ending) -> None:
        """See that the disk says so of the spec kept under this uid; nothing if none is. `SpecRefusal` if it cannot."""

    def all(self) -> KeptSpecs:
        """What there is. Raises nothing for what cannot be read: that is said in the answer."""
