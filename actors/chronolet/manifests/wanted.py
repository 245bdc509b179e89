"""What manifests wants to have running: the watch of the manifest folder, and the care for what Secrets hold.

Comes in: nothing. Goes out: the Effect Structs that `decider.outstanding` returns. Next: `effects`, whose workers read
the folder's files and send `signals`. Source: pkg/kubelet/config/file.go, file_linux.go.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect


class WatchFolder(Effect, frozen=True, kw_only=True):
    """Watch the manifest folder of the node's settings (the worker knows its path and the node's name).

    Sends, at the start and again after trouble: a FileRead for each manifest file, then FolderListed with all of them.
    Afterwards FileRead for what changed and FileGone for what vanished; FolderUnreadable while it cannot be listed.
    Where the settings name no folder, it sends one FolderListed without files and waits. Another intent asks for all of
    it anew.
    """


class KeepSecrets(Effect, frozen=True, kw_only=True):
    """Remove from the state folder what belongs to no Secret: all but these digests.

    Who applies a Secret writes first and tells then, so what was written just now is left for a while.
    """

    used: tuple[str, ...]
