"""`chronolet replay --html` on a real node: the slider shows, for past moments, what `get --at` prints."""

from pathlib import Path

from chronolet_schemas import pod
from tests.cli.support.written_node import columns
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.support.browser.chromium import browser
from tests.support.browser.page import OpenPage

TABLES = {
    "pod": ("get", "pods", "-A", "-o", "wide"),
    "container": ("get", "containers", "-A", "-o", "wide"),
    "image": ("get", "images"),
    "node": ("get", "nodes", "-o", "wide"),
}
MOMENTS = 12


def test_the_page_of_a_real_node_shows_its_past(node: Node, tmp_path: Path) -> None:
    web = node.write("web.yaml", a_pod("web", shell("app", "trap 'exit 0' TERM; sleep 3600 & wait")))
    node.write("loop.yaml", a_pod("loop", shell("app", "exit 3")))
    node.wait_until_running("web")
    node.journal.wait_for_event(pod.RestartScheduled, pod="default/loop", container="app", attempt=1)
    node.kill_process("web", "app")
    node.journal.wait_for_event(pod.ContainerStarted, pod="default/web", container="app", attempt=1)
    node.kill9()
    node.start()
    node.wait_until_running("web")
    web.unlink()
    node.wait_until_gone("web")

    file = tmp_path / "page.html"
    written = node.chronolet("replay", "--html", str(file))
    assert (written.status, written.err) == (0, "")
    with browser(tmp_path) as chromium:
        page = OpenPage(file, chromium)
        page.open()
        times: list[int] = page.browser.run("[...page.state.model.milliseconds]")
        rows = 0
        for at in sorted({times[number * (len(times) - 1) // MOMENTS] for number in range(MOMENTS + 1)}):
            page.slide(at)
            for table, words in TABLES.items():
                expected = columns(node.chronolet(*words, "--no-headers", "--at", f"@{at / 1_000:.3f}").out)
                assert [[cell for cell in row if cell] for row in page.table(table)] == expected, (table, at)
                rows += len(expected)
        assert rows > 2 * MOMENTS
        page.check()
