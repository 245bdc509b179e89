"""`apply` and `delete` with URLs and folders: limits of a download, files that `-R` includes, and refusal of `-k`."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from chronolet.cli.apply.downloads import download, shown
from chronolet.cli.errors import Failure
from tests.cli.support.written_node import WrittenNode
from tests.support.scratch import HANG_SECONDS

POD = b"apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: app, image: busybox}]}\n"
DRY = ("apply", "--dry-run", "-o", "name")


class Server(BaseHTTPRequestHandler):
    """A server with a manifest, a manifest that is too large, redirects, and a path that never responds."""

    waiting = threading.Event()

    def do_GET(self) -> None:
        if self.path == "/pod.yaml":
            self.answer(200, POD)
        elif self.path == "/moved":
            self.answer(302, b"", Location="/pod.yaml")
        elif self.path == "/file":
            self.answer(302, b"", Location="file:///etc/hostname")
        elif self.path == "/round":
            self.answer(302, b"", Location="/round")
        elif self.path == "/silent":
            self.waiting.wait()
        elif self.path == "/endless":
            self.answer(200, b"# " + b"x" * 20_000_000)
        else:
            self.answer(404, b"none")

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):  # the client stops reading at its limit
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as serving:
        serving.daemon_threads = True
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        Server.waiting.set()
        serving.shutdown()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def node(node: WrittenNode) -> WrittenNode:
    node.download = partial(download, silence_seconds=HANG_SECONDS, seconds=HANG_SECONDS)
    return node


@pytest.mark.parametrize("path", ["/pod.yaml", "/moved"])
def test_a_manifest_is_downloaded(node: WrittenNode, server: str, path: str) -> None:
    assert node.run(*DRY, "-f", f"{server}{path}") == ("pod/new\n", "", 0)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/none", "the server returned 404 Not Found, expected 200 OK"),
        ("/round", "infinite loop"),
        ("/file", "file"),
        ("/endless", "is larger than the limit of 3145728 bytes"),
    ],
)
def test_a_failed_download_is_one_error_line(node: WrittenNode, server: str, path: str, words: str) -> None:
    result = node.run(*DRY, "-f", f"{server}{path}")
    assert (result.status, result.output) == (1, "")
    assert result.errors.startswith(f"error: {server}{path}: ")
    assert words in result.errors
    assert result.errors.count("\n") == 1


def test_a_download_from_a_silent_or_slow_server_times_out(server: str) -> None:
    with pytest.raises(Failure, match="cannot be downloaded: timed out"):
        download(f"{server}/silent", 10, silence_seconds=0.1, seconds=HANG_SECONDS)
    with pytest.raises(Failure, match="download not finished within 0 s"):
        download(f"{server}/silent", 10, silence_seconds=HANG_SECONDS, seconds=0.1)


def test_the_password_of_a_url_is_not_printed() -> None:
    assert shown("https://me:hunter2@example.org/a?b=c") == "https://example.org/a?b=c"
    with pytest.raises(Failure) as failure:
        download("http://me:hunter2@127.0.0.1:1/pod.yaml", 10)
    assert "hunter2" not in str(failure.value)


def test_subfolders_are_read_only_with_recursive(node: WrittenNode, tmp_path: Path) -> None:
    for place in ("a", "a/deep", "a/.hidden"):
        (tmp_path / place).mkdir()
        name = place.replace("/", "-").replace(".", "")
        (tmp_path / place / "pod.yaml").write_bytes(POD.replace(b"new", name.encode()))
    (tmp_path / "a" / "deep" / "loop").symlink_to(tmp_path)
    assert node.run(*DRY, "-f", str(tmp_path / "a")).output == "pod/a\n"
    assert node.run(*DRY, "-R", "-f", str(tmp_path)).output == "pod/a-deep\npod/a\n"
    assert "no manifest in this folder, expected" in node.run(*DRY, "-f", str(tmp_path)).errors
    gone = node.run("delete", "-R", "-f", str(tmp_path), "--wait=false", "-o", "name")
    assert gone == ("pod/a-deep\npod/a\n", "", 0)


@pytest.mark.parametrize("verb", ["apply", "delete"])
def test_kustomizations_are_refused_with_a_remedy(node: WrittenNode, verb: str) -> None:
    result = node.run(verb, "-k", "overlays/test")
    assert (result.status, result.output) == (2, "")
    assert f"`kustomize build overlays/test | chronolet {verb} -f -`" in result.errors
    assert node.run(verb, "-R").status == 2
