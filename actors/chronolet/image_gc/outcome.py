"""How a run ended: what it comes to, and what is told of it. Pure.

Comes in: the run as it stands. Goes out: its error in the kubelet's words, what stays, KubeEvents. Next: `decider`.
Source: image_gc_manager.go (GarbageCollect, freeSpace), pkg/kubelet/kubelet.go (StartGarbageCollection).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chronolet.image_gc.plan import INVALID_CAPACITY
from chronolet.image_gc.state import Run
from chronolet.rules.names.aggregate import aggregate
from chronolet.rules.names.durations import go_duration


def error(run: Run, max_age_milliseconds: int) -> str:
    """Why the run failed; empty if it did not. A removal that was refused fails it, even if enough was freed."""
    if run.failed_for_age:
        return (
            f"wanted to free images older than {go_duration(max_age_milliseconds)}, encountered errors in image "
            f"deletion: {aggregate(run.errors)}"
        )
    if run.error:
        return run.error
    if run.errors:
        wanted = "all that are not used" if run.wanted_bytes is None else f"{run.wanted_bytes} bytes"
        return (
            f"wanted to free {wanted}, but freed {run.freed_bytes} bytes space with errors in image deletion: "
            f"{aggregate(run.errors)}"
        )
    return _too_little(run)


def _too_little(run: Run) -> str:
    wanted, freed = run.wanted_bytes or 0, run.freed_for_space_bytes
    if freed >= wanted:
        return ""
    return (
        f"Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, but only found "
        f"{freed} bytes eligible to free."
    )


def kept(run: Run) -> Mapping[str, int]:
    """How many images stay, by reason: also those whose turn did not come."""
    left = len(run.candidates) - run.next
    if not left:
        return run.kept
    why = "not_tried" if run.failed_for_age else "enough_freed"
    return {**run.kept, why: run.kept.get(why, 0) + left}


def told(run: Run, failure: str, failures_before: int) -> Iterator[tuple[str, str]]:
    """Reason and message of the KubeEvents. A failure is told from the second in a row on, of periodic runs only."""
    if failure == INVALID_CAPACITY:
        yield "InvalidDiskCapacity", failure
    if failure and failure == _too_little(run):
        yield "FreeDiskSpaceFailed", failure
    if failure and failures_before and run.trigger == "period":
        yield "ImageGCFailed", failure
