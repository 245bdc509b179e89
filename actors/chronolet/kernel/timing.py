"""Waits, pauses and back-offs of a process, in one value that its parts share.

Input: nothing. Output: `Timing`; its defaults are the values of a running agent, and a test passes its own. The
time-outs of calls to Redis are `storage.redis.store.Timeouts`. Next: `hosting.process`, which passes it on.
"""

from __future__ import annotations

from msgspec import Struct


class Timing(Struct, frozen=True, kw_only=True):
    """All times are in seconds; a few limits are counts and say so."""

    # -- effects -------------------------------------------------------------------------------------------------
    progress_seconds: float = 5.0
    """Minimum time between two progress signals of a one-shot effect. Those in between are dropped."""
    effect_first_pause_seconds: float = 1.0
    """Pause before the first retry of an effect. It doubles with each further retry of the same intent."""
    effect_longest_pause_seconds: float = 30.0
    effect_steady_seconds: float = 60.0
    """A standing effect that ran for longer than this restarts its back-off at the first pause."""
    fenced_pause_seconds: float = 1.0
    """Pause before the retry of an effect stopped by an invalid lease. It does not grow: the effect did not fail."""
    given_up_pause_seconds: float = 300.0
    """Pause before the retry of an effect whose result and failure could not be decided: each retry makes the host fail
    again.
    """
    suspect_pause_seconds: float = 10.0
    """Pause before the restart of an effect that ran when two processes ended. If something else ends the process again
    and again, it probably does so during the pause, while the effect does not run.
    """
    suspect_seconds: float = 60.0
    """An effect that has run for longer than this is not blamed for the end of its process."""

    # -- hosts ---------------------------------------------------------------------------------------------------
    host_first_back_off_seconds: float = 0.4
    """Back-off before the second restart in a row of a shard's host; the first restart is immediate. It doubles."""
    host_longest_back_off_seconds: float = 30.0
    host_steady_seconds: float = 60.0
    """A host that fails this long after its last failure begins a new series of failures."""
    due_retry_seconds: float = 30.0
    """Delay after a `Due` went to the dead letters: its entity still needs a timer, but must not keep failing the
    host.
    """
    careful_messages: int = 300
    """A host stops counting attempts after this number of messages without a failure."""
    behind_entries: int = 5_000
    """A host that is this number of log entries behind commits a step even without events: the keeper trims no further
    than the host's committed cursor.
    """
    snapshot_events: int = 10_000
    """A host stores a snapshot after this number of its own events or of log entries."""
    snapshot_seconds: float = 600.0
    """A host stores a snapshot after this time if its position has advanced."""
    behind_seconds: float = 60.0
    """A host whose committed cursor lags, and that has committed nothing for this long, commits a step without events.
    """

    # -- shards --------------------------------------------------------------------------------------------------
    looks_per_renewal: int = 4
    """Number of times that the supervisor looks for free shards per renewal of the lease."""
    upkeep_seconds: float = 60.0
    """Interval of the checks for data loss and due snapshots, and of the removal of dead processes' names and lock
    files.
    """
    history_retry_seconds: float = 30.0
    """Back-off of a shard whose history is missing here: the archive files may arrive in the meantime."""
    mail_seconds: float = 10.0
    """How long shards without commands wait for those with commands: a command that cannot be decided must not keep the
    node down.
    """
