"""What a container does after its start and before its end, its last words, and a pod that has had its time."""

import pytest

from chronolet_schemas import pod
from tests.corpus.diary import DIARY_VOLUME, deleted, diary, writes
from tests.corpus.own import Ran, joins, own, says
from tests.e2e.node import shell

pytestmark = pytest.mark.docker

HOOKS = own(
    "hooks",
    writes(
        "app",
        lifecycle={
            "postStart": {"exec": {"command": ["/bin/sh", "-c", "sleep 0.5; echo hooked >> /diary/lines"]}},
            "preStop": {"exec": {"command": ["/bin/sh", "-c", "echo asked >> /diary/lines; sleep 0.5"]}},
        },
    ),
    writes("later"),
    volumes=DIARY_VOLUME,
)
FAILED_HOOK = own(
    "failed-hook",
    says("app", "true", lifecycle={"postStart": {"exec": {"command": ["/bin/sh", "-c", "echo broken; exit 4"]}}}),
)
HTTP_HOOK = own(
    "http-hook",
    says(
        "app",
        r"(printf 'HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nfine' | nc -l -p 8000) &"
        "\nuntil cat /proc/net/tcp /proc/net/tcp6 2> /dev/null | grep -q ':1F40 .* 0A '; do sleep 0.1; done",
        lifecycle={
            "preStop": {
                "httpGet": {
                    "path": "/hook",
                    "port": "web",
                    "scheme": "HTTP",
                    "httpHeaders": [{"name": "X-Word", "value": "said"}],
                }
            }
        },
        ports=[{"containerPort": 8000, "name": "web"}],
    ),
)
SLEEPING_HOOK = own(
    "sleeping-hook",
    says("app", "true", lifecycle={"postStart": {"sleep": {"seconds": 1}}, "preStop": {"sleep": {"seconds": 1}}}),
)
DEADLINE = own("deadline", shell("app"), activeDeadlineSeconds=1)
SPEAKERS = own("last-words", restartPolicy="Never")
LAST_WORDS = {
    "file": joins(SPEAKERS, shell("file", "printf spoken > /dev/termination-log; echo logged; exit 2")),
    "elsewhere": joins(
        SPEAKERS, shell("elsewhere", "printf spoken > /tmp/words; echo logged", terminationMessagePath="/tmp/words")
    ),
    "logs": joins(SPEAKERS, shell("logs", "echo logged; exit 2", terminationMessagePolicy="FallbackToLogsOnError")),
    "none": joins(SPEAKERS, shell("none", "echo logged", terminationMessagePolicy="FallbackToLogsOnError")),
}
STOPPED_BY = own(
    "stopped-by",
    shell(
        "app",
        "trap 'echo by USR1; exit 0' USR1; trap 'echo by TERM; exit 1' TERM; echo ready; sleep 3600 & wait",
        lifecycle={"stopSignal": "SIGUSR1"},
    ),
    os={"name": "linux"},
)


def test_hooks_run_after_the_start_and_before_the_end(ran: Ran) -> None:
    ran.wait("both to run", lambda: ran.container(HOOKS, "later").get("ready"))
    ran.wait("their words", lambda: len(diary(ran, HOOKS)) == 3)
    assert diary(ran, HOOKS) == ["+app", "hooked", "+later"]
    deleted(ran, HOOKS)
    ended = diary(ran, HOOKS)[3:]
    assert sorted(ended) == ["-app", "-later", "asked"]
    assert ended.index("asked") < ended.index("-app")


def test_a_hook_after_the_start_that_fails(ran: Ran) -> None:
    # What it printed stays out of the event, as the kubelet has it: it may be a secret.
    assert ran.told("FailedPostStartHook", FAILED_HOOK) == "PostStartHook failed"
    ran.wait("its restart", lambda: ran.container(FAILED_HOOK, "app").get("restartCount"))


def test_a_hook_that_asks_a_page(ran: Ran) -> None:
    assert ran.output(HTTP_HOOK) == ""
    container = ran.inspected(HTTP_HOOK)["app"]["Id"]
    stream = ran.node.docker.logs(container, stream=True, follow=True)
    deleted(ran, HTTP_HOOK)
    said = b"".join(stream).decode()
    assert "GET /hook HTTP/1.1" in said
    assert "x-word: said" in said.lower()
    hook = ran.node.journal.wait_for_event(pod.HookEnded, pod=f"default/{HTTP_HOOK}")
    assert hook.outcome == "Succeeded"


def slept(ran: Ran, hook: str) -> int:
    """Waits for the end of the hook that sleeps; when it was asked for."""
    journal, where = ran.node.journal, f"default/{SLEEPING_HOOK}"
    assert journal.wait_for_event(pod.HookEnded, pod=where, hook=hook).outcome == "Succeeded"
    return journal.wait_for_event(pod.HookRequested, pod=where, hook=hook).requested_at


def test_hooks_that_sleep(ran: Ran) -> None:
    assert ran.output(SLEEPING_HOOK) == ""
    slept(ran, "PostStart")
    deleted(ran, SLEEPING_HOOK)
    exited = ran.node.journal.wait_for_event(pod.ContainerExited, pod=f"default/{SLEEPING_HOOK}")
    assert exited.exit_code == 0
    assert exited.finished_at - slept(ran, "PreStop") >= 1000


def test_a_pod_that_has_had_its_time(ran: Ran) -> None:
    ran.wait("its end", lambda: ran.status(DEADLINE).get("phase") == "Failed")
    status = ran.pod(DEADLINE)["status"]
    assert status["reason"] == "DeadlineExceeded"
    assert status["message"] == "Pod was active on the node longer than the specified deadline"


@pytest.mark.parametrize(
    ("kind", "words"), [("file", "spoken"), ("elsewhere", "spoken"), ("logs", "logged\n"), ("none", "")]
)
def test_a_containers_last_words(ran: Ran, kind: str, words: str) -> None:
    ran.ended(*LAST_WORDS[kind])
    ran.wait(
        f"{words!r}; now {ran.container(*LAST_WORDS[kind])}",
        lambda: ran.container(*LAST_WORDS[kind])["state"]["terminated"].get("message", "") == words,
    )


def test_the_signal_that_asks_a_container_to_end(ran: Ran) -> None:
    ran.wait("its trap", lambda: ran.written(STOPPED_BY) == "ready\n")
    stream = ran.node.docker.logs(ran.inspected(STOPPED_BY)["app"]["Id"], stream=True, follow=True)
    deleted(ran, STOPPED_BY)
    assert b"".join(stream).decode() == "ready\nby USR1\n"
