"""The watch of the manifest folder.

Comes in: `wanted.WatchFolder`. Goes out: `signals`. Next: `decider`. Answers to pkg/kubelet/config/file.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import structlog

from chronolet.kernel.kind import Effect, EffectContext, Job
from chronolet.manifests import identity, signals, wanted
from chronolet.ports.manifests import Folder, FolderNews, ManifestFile, Reader
from chronolet_schemas import podspec

log = structlog.get_logger("chronolet.manifests")

_DIGEST_DIGITS = 32


def jobs(folder: Folder, node: str, read: Reader) -> Mapping[type[Effect], Job]:
    """The standing effects of the manifests kind. `read` turns a file's content into pods."""
    return {wanted.WatchFolder: Job(Watching(folder, node, read).watch)}


class Watching:
    """The worker of WatchFolder."""

    def __init__(self, folder: Folder, node: str, read: Reader) -> None:
        self._folder = folder
        self._node = node
        self._read = read

    def watch(self, effect: wanted.WatchFolder, context: EffectContext) -> None:
        """Until it is no longer wanted."""
        del effect
        for news in self._folder.follow(context.cancelled):
            context.fence("folder.read")
            self._tell(news, context)

    def _tell(self, news: FolderNews, context: EffectContext) -> None:
        path = self._folder.path
        if news.error:
            log.warning("manifest folder unreadable", path=path, error=news.error)
            context.send(signals.FolderUnreadable(path=path, error=news.error))
            return
        for gone in news.gone:
            context.send(signals.FileGone(path=gone))
        for file in news.changed:
            read = self._file(file)
            _log(read)
            context.send(read)
        if news.complete:
            context.send(signals.FolderListed(path=path, files=news.files))

    def _file(self, file: ManifestFile) -> signals.FileRead:
        if file.error:
            return signals.FileRead(path=file.path, digest=_digest(b""), errors=(f"{file.name}: {file.error}",))
        parsed = self._read(file.content, file.name)
        return signals.FileRead(
            path=file.path,
            digest=_digest(file.content),
            pods=tuple(self._pod(file.path, pod) for pod in parsed.pods),
            findings=tuple(str(finding) for finding in parsed.findings),
            errors=tuple(str(error) for error in parsed.errors),
        )

    def _pod(self, path: str, pod: podspec.Pod) -> signals.FilePod:
        digest = podspec.digest(pod)
        uid = identity.file_uid(node=self._node, path=path, pod=pod.key, digest=digest)
        return signals.FilePod(uid=uid, digest=digest, manifest=pod)


def _log(read: signals.FileRead) -> None:
    """For whoever looks at the agent's own output and wonders why a file brings no pod."""
    for error in read.errors:
        log.warning("manifest refused", path=read.path, error=error)
    for finding in read.findings:
        log.warning("manifest not honoured in full", path=read.path, finding=finding)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGEST_DIGITS]
