"""Hooks, termination messages, stop signals, and a pod whose deadline has passed."""

import pytest

from chronolet_schemas import pod
from tests.corpus.extra.diary import DIARY_VOLUME, delete_pod, diary, diary_container
from tests.corpus.extra.pods import AppliedPods, add_container, add_pod, script
from tests.e2e.node import shell

pytestmark = pytest.mark.docker

HOOKS = add_pod(
    "hooks",
    diary_container(
        "app",
        lifecycle={
            "postStart": {"exec": {"command": ["/bin/sh", "-c", "sleep 0.5; echo hooked >> /diary/lines"]}},
            "preStop": {"exec": {"command": ["/bin/sh", "-c", "echo hook >> /diary/lines; sleep 0.5"]}},
        },
    ),
    diary_container("later"),
    volumes=DIARY_VOLUME,
)
FAILED_HOOK = add_pod(
    "failed-hook",
    script("app", "true", lifecycle={"postStart": {"exec": {"command": ["/bin/sh", "-c", "echo broken; exit 4"]}}}),
)
HTTP_HOOK = add_pod(
    "http-hook",
    script(
        "app",
        r"(printf 'HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nfine' | nc -l -p 8000) &"
        "\nuntil cat /proc/net/tcp /proc/net/tcp6 2> /dev/null | grep -q ':1F40 .* 0A '; do sleep 0.1; done",
        lifecycle={
            "preStop": {
                "httpGet": {
                    "path": "/hook",
                    "port": "web",
                    "scheme": "HTTP",
                    "httpHeaders": [{"name": "X-Word", "value": "value"}],
                }
            }
        },
        ports=[{"containerPort": 8000, "name": "web"}],
    ),
)
SLEEPING_HOOK = add_pod(
    "sleeping-hook",
    script("app", "true", lifecycle={"postStart": {"sleep": {"seconds": 1}}, "preStop": {"sleep": {"seconds": 1}}}),
)
DEADLINE = add_pod("deadline", shell("app"), activeDeadlineSeconds=1)
SPEAKERS = add_pod("last-words", restartPolicy="Never")
LAST_WORDS = {
    "file": add_container(SPEAKERS, shell("file", "printf spoken > /dev/termination-log; echo logged; exit 2")),
    "elsewhere": add_container(
        SPEAKERS, shell("elsewhere", "printf spoken > /tmp/words; echo logged", terminationMessagePath="/tmp/words")
    ),
    "logs": add_container(
        SPEAKERS, shell("logs", "echo logged; exit 2", terminationMessagePolicy="FallbackToLogsOnError")
    ),
    "none": add_container(SPEAKERS, shell("none", "echo logged", terminationMessagePolicy="FallbackToLogsOnError")),
}
STOPPED_BY = add_pod(
    "stopped-by",
    shell(
        "app",
        "trap 'echo by USR1; exit 0' USR1; trap 'echo by TERM; exit 1' TERM; echo ready; sleep 3600 & wait",
        lifecycle={"stopSignal": "SIGUSR1"},
    ),
    os={"name": "linux"},
)


def test_hooks_run_after_the_start_and_before_the_end(pods: AppliedPods) -> None:
    pods.wait("both to run", lambda: pods.container(HOOKS, "later").get("ready"))
    pods.wait("their words", lambda: len(diary(pods, HOOKS)) == 3)
    assert diary(pods, HOOKS) == ["+app", "hooked", "+later"]
    delete_pod(pods, HOOKS)
    ended = diary(pods, HOOKS)[3:]
    assert sorted(ended) == ["-app", "-later", "hook"]
    assert ended.index("hook") < ended.index("-app")


def test_a_post_start_hook_that_fails(pods: AppliedPods) -> None:
    # As with the kubelet, the event omits the hook's output, which may be secret.
    assert pods.event_message("FailedPostStartHook", FAILED_HOOK) == "PostStartHook failed"
    pods.wait("its restart", lambda: pods.container(FAILED_HOOK, "app").get("restartCount"))


def test_a_hook_that_requests_a_page(pods: AppliedPods) -> None:
    assert pods.output(HTTP_HOOK) == ""
    container = pods.inspected(HTTP_HOOK)["app"]["Id"]
    stream = pods.node.docker.logs(container, stream=True, follow=True)
    delete_pod(pods, HTTP_HOOK)
    request = b"".join(stream).decode()
    assert "GET /hook HTTP/1.1" in request
    assert "x-word: value" in request.lower()
    hook = pods.node.journal.wait_for_event(pod.HookEnded, pod=f"default/{HTTP_HOOK}")
    assert hook.outcome == "Succeeded"


def slept(pods: AppliedPods, hook: str) -> int:
    """Wait for the end of the sleeping hook; return the time at which the hook was requested."""
    journal, where = pods.node.journal, f"default/{SLEEPING_HOOK}"
    assert journal.wait_for_event(pod.HookEnded, pod=where, hook=hook).outcome == "Succeeded"
    return journal.wait_for_event(pod.HookRequested, pod=where, hook=hook).requested_at


def test_hooks_that_sleep(pods: AppliedPods) -> None:
    assert pods.output(SLEEPING_HOOK) == ""
    slept(pods, "PostStart")
    delete_pod(pods, SLEEPING_HOOK)
    exited = pods.node.journal.wait_for_event(pod.ContainerExited, pod=f"default/{SLEEPING_HOOK}")
    assert exited.exit_code == 0
    assert exited.finished_at - slept(pods, "PreStop") >= 1000


def test_a_pod_whose_deadline_has_passed(pods: AppliedPods) -> None:
    pods.wait("its end", lambda: pods.status(DEADLINE).get("phase") == "Failed")
    status = pods.pod(DEADLINE)["status"]
    assert status["reason"] == "DeadlineExceeded"
    assert status["message"] == "Pod was active on the node longer than the specified deadline"


@pytest.mark.parametrize(
    ("kind", "words"), [("file", "spoken"), ("elsewhere", "spoken"), ("logs", "logged\n"), ("none", "")]
)
def test_termination_messages(pods: AppliedPods, kind: str, words: str) -> None:
    pods.ended(*LAST_WORDS[kind])
    pods.wait(
        f"{words!r}; now {pods.container(*LAST_WORDS[kind])}",
        lambda: pods.container(*LAST_WORDS[kind])["state"]["terminated"].get("message", "") == words,
    )


def test_the_stop_signal_of_a_container(pods: AppliedPods) -> None:
    pods.wait("its trap", lambda: pods.written(STOPPED_BY) == "ready\n")
    stream = pods.node.docker.logs(pods.inspected(STOPPED_BY)["app"]["Id"], stream=True, follow=True)
    delete_pod(pods, STOPPED_BY)
    assert b"".join(stream).decode() == "ready\nby USR1\n"
