"""The watch of the manifest folder, from files on disk to signals."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from chronolet.adapters.manifest_files import read_documents
from chronolet.adapters.manifest_files.watched_folder import ManifestFolder
from chronolet.adapters.state_folder.secrets import SecretFiles
from chronolet.manifests import effects, identity, signals, wanted
from chronolet_schemas import podspec
from tests.integration.effects.support import Context
from tests.support.scratch import HANG_SECONDS, wait_until

WATCH = wanted.WatchFolder(subject="folder", intent="watch/0")


def secrets_in(folder: Path) -> SecretFiles:
    secrets = SecretFiles(folder.with_name(f"{folder.name}-state"), "node-1")
    secrets.prepare()
    return secrets


class Watch:
    def __init__(self, folder: Path) -> None:
        self.context = Context(entity="node", cause="")
        self.folder = folder
        jobs = effects.jobs(ManifestFolder(folder), "node-1", read_documents, secrets_in(folder))
        self._thread = threading.Thread(target=jobs[wanted.WatchFolder].run, args=(WATCH, self.context))
        self._thread.start()

    def sent(self) -> list[Any]:
        return [signal for signal, _ in list(self.context.sent)]

    def last(self, kind: type[Any]) -> Any:
        return next((one for one in reversed(self.sent()) if isinstance(one, kind)), None)

    def stop(self) -> None:
        self.context.cancelled.set()
        self._thread.join(HANG_SECONDS)
        assert not self._thread.is_alive()


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    (tmp_path / "web.json").write_text(json.dumps(manifest("web")))
    started = Watch(tmp_path)
    wait_until(lambda: started.last(signals.FolderListed) is not None, "the first listing")
    yield started
    started.stop()


def manifest(name: str, **container: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "image": "chronolet/busybox:1", **container}]},
    }


def put(path: Path, document: dict[str, Any]) -> None:
    """Write a file that is complete as soon as it appears."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(json.dumps(document))
    unfinished.rename(path)


def test_a_file_is_reported_with_its_pods_before_the_listing(watch: Watch) -> None:
    read, listed = watch.sent()
    path = str(watch.folder / "web.json")
    assert (read.path, read.errors, read.findings) == (path, (), ())
    assert listed == signals.FolderListed(path=str(watch.folder), files=(path,))
    (pod,) = read.pods
    assert pod.manifest.key == "default/web"
    assert pod.digest == podspec.digest(pod.manifest)
    assert pod.uid == identity.file_uid(node="node-1", path=path, pod="default/web", digest=pod.digest)


def test_an_invalid_file_is_reported_with_its_errors_and_without_pods(watch: Watch) -> None:
    bad = manifest("web", imagePullPolicy="Sometimes")
    with capture_logs() as logged:
        put(watch.folder / "bad.json", bad)
        wait_until(lambda: watch.last(signals.FileRead).path.endswith("bad.json"), "the bad file")
    read = watch.last(signals.FileRead)
    assert read.pods == ()
    # The agent's own log also reports the errors.
    assert [line["error"] for line in logged if line["event"] == "manifest refused"] == list(read.errors)
    assert any(error.startswith("bad.json: spec.containers[0].imagePullPolicy") for error in read.errors), read.errors


def test_findings_are_reported_as_lines(watch: Watch) -> None:
    put(watch.folder / "more.json", manifest("more", volumeDevices=[{"name": "raw"}]))
    wait_until(lambda: watch.last(signals.FileRead).path.endswith("more.json"), "the file")
    read = watch.last(signals.FileRead)
    assert [pod.manifest.key for pod in read.pods] == ["default/more"]
    assert any(line.startswith("spec.containers[0].volumeDevices: ") for line in read.findings), read.findings


def test_a_file_and_then_the_folder_vanish(watch: Watch) -> None:
    path = watch.folder / "web.json"
    path.unlink()
    wait_until(lambda: watch.last(signals.FileGone) == signals.FileGone(path=str(path)), "the removal")
    watch.folder.rmdir()
    wait_until(lambda: watch.last(signals.FolderUnreadable) is not None, "the missing folder")
    assert watch.last(signals.FolderUnreadable).error == "No such file or directory"
    watch.folder.mkdir()
    wait_until(lambda: watch.last(signals.FolderListed).files == (), "the empty folder")
