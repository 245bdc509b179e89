"""Effect workers of the `manifests` kind: watch the manifest folder, and remove unused Secret data.

Input: `wanted.WatchFolder`, `wanted.KeepSecrets`. Output: `signals`; files in the state folder. Next: `decider`.
Source: pkg/kubelet/config/file.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import structlog

from chronolet.kernel.kind import Effect, EffectContext, Job
from chronolet.manifests import identity, signals, wanted
from chronolet.manifests.state import file_source
from chronolet.ports.pods.manifests import Folder, FolderNews, ManifestFile, Reader
from chronolet.ports.pods.secrets import Secret, SecretRefusal, Secrets
from chronolet_schemas import podspec

log = structlog.get_logger("chronolet.manifests")

_DIGEST_DIGITS = 32


_SWEEP_SECONDS = 60.0


def jobs(folder: Folder, node: str, read: Reader, secrets: Secrets) -> Mapping[type[Effect], Job]:
    """Return the workers of the standing effects. `read` parses a file's content into pods and Secrets."""
    return {
        wanted.WatchFolder: Job(Watching(folder, node, read, secrets).watch),
        wanted.KeepSecrets: Job(Sweeping(secrets).sweep),
    }


class Sweeping:
    """The worker of KeepSecrets."""

    def __init__(self, secrets: Secrets, seconds: float = _SWEEP_SECONDS) -> None:
        self._secrets = secrets
        self._seconds = seconds

    def sweep(self, effect: wanted.KeepSecrets, context: EffectContext) -> None:
        """Remove unused Secret data periodically, until cancelled."""
        while not context.cancelled.is_set():
            for name in self._secrets.unused(effect.used):
                context.fence("secrets.remove")
                try:
                    self._secrets.remove(name)
                except SecretRefusal as refusal:
                    log.warning("unused Secret data could not be removed, retrying", error=str(refusal))
                context.done("secrets.remove")
            context.cancelled.wait(self._seconds)


class Watching:
    """The worker of WatchFolder."""

    def __init__(self, folder: Folder, node: str, read: Reader, secrets: Secrets) -> None:
        self._folder = folder
        self._node = node
        self._read = read
        self._secrets = secrets

    def watch(self, effect: wanted.WatchFolder, context: EffectContext) -> None:
        """Follow the folder until cancelled."""
        del effect
        for news in self._folder.follow(context.cancelled):
            context.fence("folder.read")
            self._send(news, context)

    def _send(self, news: FolderNews, context: EffectContext) -> None:
        path = self._folder.path
        if news.error:
            log.warning("manifest folder cannot be read; its pods are left unchanged", path=path, error=news.error)
            context.send(signals.FolderUnreadable(path=path, error=news.error))
            return
        for gone in news.gone:
            context.send(signals.FileGone(path=gone))
        for file in news.changed:
            read = self._file(file, context)
            _log(read)
            context.send(read)
        if news.complete:
            context.send(signals.FolderListed(path=path, files=news.files))

    def _file(self, file: ManifestFile, context: EffectContext) -> signals.FileRead:
        if file.error:
            return signals.FileRead(path=file.path, digest=_digest(b""), errors=(f"{file.name}: {file.error}",))
        parsed = self._read(file.content, file.name)
        # If the content may include a Secret, its digest is keyed and reveals nothing.
        secret = bool(parsed.secrets or parsed.errors)
        digest = self._secrets.seal(file.content) if secret else _digest(file.content)
        try:
            kept = tuple(self._kept(file.path, one, context) for one in parsed.secrets)
        except SecretRefusal as refusal:
            return signals.FileRead(path=file.path, digest=digest, errors=(f"{file.name}: {refusal}",))
        return signals.FileRead(
            path=file.path,
            digest=digest,
            pods=tuple(self._pod(file.path, pod) for pod in parsed.pods),
            findings=tuple(str(finding) for finding in parsed.findings),
            errors=tuple(str(error) for error in parsed.errors),
            secrets=kept,
        )

    def _kept(self, path: str, secret: Secret, context: EffectContext) -> signals.FileSecret:
        """Store a Secret in the state folder before its digest is sent."""
        context.fence("secrets.keep")
        digest = self._secrets.keep(secret, file_source(path))
        context.done("secrets.keep")
        return signals.FileSecret(secret=secret.key, type=secret.type, digest=digest)

    def _pod(self, path: str, pod: podspec.Pod) -> signals.FilePod:
        digest = podspec.digest(pod)
        uid = identity.file_uid(node=self._node, path=path, pod=pod.key, digest=digest)
        return signals.FilePod(uid=uid, digest=digest, manifest=pod)


def _log(read: signals.FileRead) -> None:
    """Log why a file yields no pod, or which of its fields are not honoured."""
    for error in read.errors:
        log.warning("manifest refused", path=read.path, error=error)
    for finding in read.findings:
        log.warning("manifest field not honoured", path=read.path, finding=finding)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGEST_DIGITS]
