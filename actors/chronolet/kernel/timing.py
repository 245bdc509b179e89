"""Defines the waits, pauses and back-offs of a process, in one value that all its parts share.

Input: nothing. Output: `Timing`; a running agent uses the defaults, a test passes other values. The time-outs of calls
to Redis are in `storage.redis.store.Timeouts`. Next: `hosting.process`, which passes `Timing` on.
"""

from __future__ import annotations

from msgspec import Struct


class Timing(Struct, frozen=True, kw_only=True):
    """The timing of one process. Fields named `..._seconds` are in seconds; the other fields are counts."""

    # -- effects -------------------------------------------------------------------------------------------------
    progress_seconds: float = 5.0
    """Minimum time between two progress signals of a one-shot effect. Signals sent sooner are dropped."""
    effect_first_pause_seconds: float = 1.0
    """Pause before the first retry of an effect. It doubles with each further retry of the same intent."""
    effect_longest_pause_seconds: float = 30.0
    effect_steady_seconds: float = 60.0
    """If a standing effect ran for longer than this, its back-off starts again with the first pause."""
    fenced_pause_seconds: float = 1.0
    """Pause before retrying an effect that was stopped by an invalid lease. It does not grow, because the effect itself
    did not fail.
    """
    given_up_pause_seconds: float = 300.0
    """Pause before retrying an effect of which neither the result nor the failure could be decided: each retry makes
    the host fail again.
    """
    suspect_pause_seconds: float = 10.0
    """Pause before restarting an effect that was running when two processes ended. If something else keeps ending the
    process, that will probably happen during the pause, while the effect is not running.
    """
    suspect_seconds: float = 60.0
    """An effect that has been running for longer than this is not blamed if its process ends."""

    # -- hosts ---------------------------------------------------------------------------------------------------
    host_first_back_off_seconds: float = 0.4
    """Back-off before the second consecutive restart of a shard's host; the first restart is immediate. It doubles with
    each further restart.
    """
    host_longest_back_off_seconds: float = 30.0
    host_steady_seconds: float = 60.0
    """If a host fails later than this after its last failure, the count of consecutive failures starts over."""
    due_retry_seconds: float = 30.0
    """Delay before a `Due` that went to the dead letters is delivered again: its entity still needs a timer, but must
    not make the host fail continuously.
    """
    careful_messages: int = 300
    """Number of messages without a failure after which a host stops counting attempts."""
    behind_entries: int = 5_000
    """A host whose committed cursor lags by more than this number of log entries commits a step even without events,
    because the keeper trims the log only up to the committed cursors.
    """
    snapshot_events: int = 10_000
    """A host stores a snapshot after this number of events of its shard, or of log entries of any kind."""
    snapshot_seconds: float = 600.0
    """A host stores a snapshot after this time if its position has advanced since the last one."""
    behind_seconds: float = 60.0
    """A host whose committed cursor lags, and which has committed nothing for this long, commits a step without events.
    """

    # -- moves of shards ----------------------------------------------------------------------------------------
    handover_seconds: float = 2.0
    """How long effects that are in progress may go on when their shard moves to another process. What has not ended by
    then is cancelled, and the new owner repeats it.
    """
    awaited_look_seconds: float = 0.05
    """Interval at which the supervisor looks for a shard that another process is about to release for it."""

    # -- shards --------------------------------------------------------------------------------------------------
    looks_per_renewal: int = 4
    """Number of looks that the supervisor takes per renewal of the lease while something is open: a shard is free, or
    has no host here, or another number of shards is requested. See `looks` for the others.
    """
    reshard_patience_seconds: float = 15.0
    """How long a request for another number of shards waits for shards that are not handed over; then it is refused."""
    upkeep_seconds: float = 60.0
    """Interval at which the supervisor checks for data loss, wakes the hosts for due snapshots, and removes the names
    and lock files of dead processes.
    """
    history_retry_seconds: float = 30.0
    """Back-off of a shard whose history is missing on this machine: the archive files may arrive in the meantime."""
    mail_seconds: float = 10.0
    """Maximum time for which shards without waiting commands are held back until the waiting commands of other shards
    are decided: a command that cannot be decided must not keep the node down.
    """
