"""Effects of manifests: watch the manifest folder, and remove unused Secret data.

Input: none. Output: the Effect Structs that `decider.outstanding` returns. Next: `effects`, whose workers read the
folder's files and send `signals`. Source: pkg/kubelet/config/file.go, file_linux.go.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect


class WatchFolder(Effect, frozen=True, kw_only=True):
    """Watch the manifest folder of the node's settings (the worker knows its path and the node's name).

    At the start and again after an error it sends a FileRead for each manifest file, then FolderListed with all of
    them. Afterwards: FileRead for a changed file, FileGone for a vanished one, FolderUnreadable while the folder cannot
    be listed. Without a folder in the settings it sends one FolderListed without files and waits. A changed intent
    restarts the whole sequence.
    """


class KeepSecrets(Effect, frozen=True, kw_only=True):
    """Remove from the state folder all Secret data except these digests.

    A Secret is written before it is announced, so recently written data is kept for a while.
    """

    used: tuple[str, ...]
