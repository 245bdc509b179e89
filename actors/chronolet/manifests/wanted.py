"""Effects of the `manifests` kind: watch the manifest folder, and remove unused Secret data.

Input: none. Output: the Effect Structs that `decider.outstanding` returns. Next: `effects`, whose workers read the
folder's files and send `signals`. Source: pkg/kubelet/config/file.go, file_linux.go.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect


class WatchFolder(Effect, frozen=True, kw_only=True):
    """Standing: watch the manifest folder that the node's settings name (the worker knows its path and the node's
    name).

    At the start and again after an error, send a FileRead for each manifest file, then FolderListed with all of them.
    Afterwards, send FileRead for a changed file, FileGone for a removed one, and FolderUnreadable while the folder
    cannot be listed. If the settings name no folder, send one FolderListed without files and wait. A changed intent
    restarts the whole sequence.
    """


class KeepSecrets(Effect, frozen=True, kw_only=True):
    """Standing: remove all Secret data from the state folder except that with the digests in `used`.

    A Secret is written before it is announced, so recently written data is kept for a while.
    """

    used: tuple[str, ...]
