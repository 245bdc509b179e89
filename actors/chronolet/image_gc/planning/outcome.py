"""The outcome of a run: its error, the images kept, and the KubeEvents about it. Pure.

Input: the run. Output: its error in the kubelet's words, images kept, KubeEvents. Next: `decider`. Source:
image_gc_manager.go (GarbageCollect, freeSpace), pkg/kubelet/kubelet.go (StartGarbageCollection).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chronolet.image_gc.planning.plan import INVALID_CAPACITY
from chronolet.image_gc.state import Run
from chronolet.rules.names.aggregate import aggregate
from chronolet.rules.names.durations import go_duration


def error(run: Run, max_age_milliseconds: int) -> str:
    """Return why the run failed; empty if it succeeded. A refused removal makes it fail even if enough was freed."""
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
    """Return the number of images kept, by reason, including candidates that were not reached."""
    left = len(run.candidates) - run.next
    if not left:
        return run.kept
    why = "not_tried" if run.failed_for_age else "enough_freed"
    return {**run.kept, why: run.kept.get(why, 0) + left}


def kube_event_texts(run: Run, failure: str, failures_before: int) -> Iterator[tuple[str, str]]:
    """Yield the reason and message of each KubeEvent.

    ImageGCFailed is reported only for periodic runs, from the second consecutive failure on.
    """
    if failure == INVALID_CAPACITY:
        yield "InvalidDiskCapacity", failure
    if failure and failure == _too_little(run):
        yield "FreeDiskSpaceFailed", failure
    if failure and failures_before and run.trigger == "period":
        yield "ImageGCFailed", failure
