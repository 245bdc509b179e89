"""Decides the log of a test again, at the test's end: whatever a test does to a node, its log must show why each event
happened.

Input: entries in order, kinds. Output: an AssertionError that names each decision that cannot be reproduced. Next: the
kernel's `rig`, the e2e tests' `Journal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from chronolet.history.deciding_processes import KindsOf
from chronolet.history.redeciding import Redeciding, Summary
from chronolet.keeper.policy import Policy as KeeperPolicy
from chronolet.kernel.kind import Kind
from chronolet.node.settings.plain import read_settings
from chronolet.node.settings.policies import deciding
from chronolet.node.settings.settings import Settings
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Entry

_MOST_SHOWN = 10


def check_node(
    log: Iterable[Entry],
    *,
    skips: bool = False,
    keeping: KeeperPolicy = KeeperPolicy(),  # noqa: B008 - frozen
) -> Summary:
    """Check a node's log, with the settings that its processes have recorded. `skips`: see `check`. `keeping`: the
    keeper's policy, which is no setting.
    """

    def kinds_of(process: kernel.ProcessStarted) -> Sequence[Kind[Any]]:
        return deciding(read_settings(process.settings), process.architecture, keeping=keeping)

    usual = deciding(Settings(node="n", root_dir=Path("/nonexistent")), "x86_64", keeping=keeping)
    return check(log, usual, kinds_of, skips=skips)


def check(
    log: Iterable[Entry], kinds: Iterable[Kind[Any]], kinds_of: KindsOf | None = None, *, skips: bool = False
) -> Summary:
    """Check a log of these kinds. `skips`: whether some events may have no record of their input. Raises
    AssertionError.
    """
    redeciding = Redeciding(kinds, kinds_of)
    every = [finding for entry in log for finding in redeciding.add(entry)]
    every += redeciding.end()
    findings = [one for one in every if one.kind != "damaged"]  # tests damage entries
    shown = "\n".join(f"{one.position} {one.actor} {one.entity}: {one.reason}" for one in findings[:_MOST_SHOWN])
    assert not findings, f"{len(findings)} decisions are not reproduced, among them\n{shown}"
    summary = redeciding.summary()
    assert skips or len(every) > len(findings) or not summary.skipped, (
        f"{summary.skipped} events have no record of their input"
    )
    return summary
