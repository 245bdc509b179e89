"""A user's commands against a real node, beyond those in tests/e2e/pods/test_pod_life.py."""

from chronolet_schemas import pod
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.support.scratch import HANG_SECONDS

IGNORES_TERM = "trap '' TERM; echo started; while :; do sleep 3600 & wait $!; done"


def test_a_second_delete_shortens_the_grace_period(node: Node) -> None:
    file = node.write_unwatched(
        "slow.yaml", a_pod("slow", shell("app", IGNORES_TERM), terminationGracePeriodSeconds=600)
    )
    assert node.chronolet("apply", "-f", file).status == 0
    node.wait_until_running("slow")
    first = node.chronolet("delete", "pod", "slow", "--timeout", "1s")
    assert (first.status, first.err) == (1, "error: timed out waiting for the condition on pods/slow\n")
    # This succeeds within a minute, the time limit for a command here, not after the grace period of ten minutes.
    assert node.chronolet("delete", "pod", "slow", "--now").out == "pod/slow deleted\n"
    node.wait_until_gone("slow")
    ends = node.journal.events(pod.TerminationRequested, pod="default/slow")
    assert [one.grace_period_seconds for one in ends] == [600, 2]
    assert node.running("slow") == {}
    assert "not found" in node.chronolet("delete", "pod", "slow", "--now").err


TWO_LINES = "echo begun; while ! test -f /tmp/go; do :; done; echo ended; exit 3"


def test_output_and_commands_of_every_kind_of_container(node: Node) -> None:
    node.write(
        "kinds.yaml",
        a_pod(
            "kinds",
            shell("app", "test -t 1 && echo terminal; trap 'exit 0' TERM; sleep 3600 & wait", tty=True, stdin=True),
            shell("crashes", f"touch /tmp/go; {TWO_LINES}"),
            initContainers=[
                shell("first", "echo first; echo aside >&2"),
                shell("sidecar", "echo sidecar; trap 'exit 0' TERM; sleep 3600 & wait", restartPolicy="Always"),
            ],
        ),
    )
    node.journal.wait_for_event(pod.RestartScheduled, pod="default/kinds", container="crashes", attempt=1)
    node.wait_for_output("kinds", "sidecar", "sidecar")
    node.wait_for_output("kinds", "app", "terminal")

    def is_in_back_off() -> bool:
        crashes = node.journal.pods["default/kinds"].container("crashes")
        return crashes is not None and crashes.phase == "backing_off" and crashes.next_attempt >= 2

    # Commands need no agent, and while the agent is paused no new attempt starts.
    with node.paused_when("a back-off of crashes", is_in_back_off):
        check_output(node)
        check_commands(node)
        check_pages(node)


def check_output(node: Node) -> None:
    def lines(*words: str) -> list[str]:
        result = node.chronolet("logs", "kinds", *words)
        assert (result.status, result.err) == (0, ""), result
        return result.out.splitlines()

    assert sorted(lines("-c", "first")) == ["aside", "first"]
    assert lines("sidecar") == ["sidecar"]
    assert lines("app") == ["terminal"], "a terminal's output has no frames"
    assert lines("crashes") == lines("crashes", "-p") == ["begun", "ended"]
    assert lines("crashes", "--tail", "1") == ["ended"]
    assert lines("crashes", "--limit-bytes", "3") == ["beg"]
    assert lines("crashes", "--since-time", "2000-01-01T00:00:00Z") == ["begun", "ended"]
    assert lines("crashes", "--since-time", "2200-01-01T00:00:00Z") == []
    (stamped,) = lines("sidecar", "--timestamps")
    assert stamped[:4].isdigit()
    assert stamped.endswith("Z sidecar")
    everything = lines("--all-containers", "--prefix")
    assert everything[2:] == [
        "[pod/kinds/sidecar] sidecar",
        "[pod/kinds/app] terminal",
        "[pod/kinds/crashes] begun",
        "[pod/kinds/crashes] ended",
    ]
    none = node.chronolet("logs", "kinds", "sidecar", "-p")
    assert none.err == 'error: previous terminated container "sidecar" in pod "kinds" not found\n'


def check_commands(node: Node) -> None:
    result = node.chronolet("exec", "kinds", "--", "tty")
    listed = "app, crashes, first (init), sidecar (init)"
    assert (result.status, result.out) == (1, "not a tty\n")
    assert result.err == f'Defaulted container "app" out of: {listed}\ncommand terminated with exit code 1\n'
    assert node.chronolet("exec", "kinds", "-c", "sidecar", "--", "hostname").out == "kinds\n"
    ended = node.chronolet("exec", "kinds", "-c", "first", "--", "hostname")
    assert ended.err == 'error: container "first" in pod "kinds" is not running: Completed\n'
    absent = node.chronolet("exec", "kinds", "-c", "sidecar", "--", "no-such-command")
    assert (absent.status, "executable file not found" in absent.out + absent.err) == (126, True), absent


def check_pages(node: Node) -> None:
    page = node.chronolet("describe", "pod", "kinds").out
    assert page.index("Init Containers:") < page.index("  first:") < page.index("  sidecar:")
    assert page.index("  sidecar:") < page.index("\nContainers:") < page.index("  crashes:")
    assert "Last State:     Terminated" in page
    rows = node.chronolet("get", "containers", "-o", "wide", "--no-headers", "--field-selector", "metadata.name=kinds")
    assert [line.split()[0] for line in rows.out.splitlines()] == ["first", "sidecar", "app", "crashes"]


def test_exec_passes_input_and_output_byte_for_byte(node: Node) -> None:
    node.write("pipe.yaml", a_pod("pipe", shell("app")))
    node.wait_until_running("pipe")
    data = bytes(range(256)) * 4096
    echoed = node.run_with_input(data, "exec", "-i", "pipe", "--", "cat")
    assert (echoed.returncode, echoed.stdout == data, echoed.stderr) == (0, True, b"")
    counted = node.run_with_input(data, "exec", "-i", "pipe", "--", "sh", "-c", "wc -c; echo done >&2; exit 9")
    assert (counted.returncode, counted.stdout.strip()) == (9, str(len(data)).encode())
    assert counted.stderr == b"done\ncommand terminated with exit code 9\n"
    # One command does not read to the end; the next closes its output long before it exits.
    assert node.run_with_input(data, "exec", "-i", "pipe", "--", "head", "-c", "3").stdout == data[:3]
    early = node.run_with_input(b"", "exec", "pipe", "--", "sh", "-c", "exec >&- 2>&-; sleep 1; exit 6")
    assert early.returncode == 6


def test_exec_ends_with_its_container(node: Node) -> None:
    node.write("cut.yaml", a_pod("cut", shell("app"), restartPolicy="Never"))
    node.wait_until_running("cut")
    with node.running_command("exec", "cut", "--", "sh", "-c", "echo begun; sleep 3600") as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"begun\n"
        node.kill_process("cut", "app")
        assert command.wait(HANG_SECONDS) != 0
    node.wait_for_status("cut", "Error")
    result = node.chronolet("exec", "cut", "--", "true")
    assert result.err == "error: cannot exec into a container in a completed pod; current phase is Failed\n"
