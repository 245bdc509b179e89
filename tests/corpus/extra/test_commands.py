"""Commands, arguments, environment and host names, seen from inside the container."""

import pytest

from tests.corpus import images
from tests.corpus.extra.pods import AppliedPods, add_container, add_pod, script
from tests.support.scratch import HANG_SECONDS

pytestmark = pytest.mark.docker

COMMANDS = add_pod("commands", enableServiceLinks=False)
EXPANDED = add_container(
    COMMANDS,
    {
        "name": "expanded",
        "image": images.SHELL,
        "command": ["/bin/sh", "-c", 'for one in "$@"; do echo "$one"; done; echo "$LATER"; echo end; sleep 3600'],
        "args": ["$(FIRST)", "$(FIRST)$(FIRST)", "$$(FIRST)", "$(NOBODY)", "$(LATER)", "a $(FIRST", "$FIRST"],
        "env": [{"name": "FIRST", "value": "one"}, {"name": "LATER", "value": "$(FIRST) and $(BEHIND), $$(FIRST)"}],
    },
)
EXPANDED_COMMAND = add_container(
    COMMANDS,
    {
        "name": "expanded-command",
        "image": images.SHELL,
        "command": ["$(SHELL)", "-c", "echo $(WORD); echo end; sleep 3600"],
        "env": [{"name": "SHELL", "value": "/bin/sh"}, {"name": "WORD", "value": "value"}],
    },
)
ELSEWHERE = add_container(COMMANDS, script("elsewhere", "pwd", workingDir="/tmp/made/for/it"))
NAMED = add_pod("named-as-its-pod", script("app", "hostname; cat /proc/sys/kernel/hostname"))
SAME_VARIABLE = add_container(
    COMMANDS,
    script("variable-twice", "echo $WORD", env=[{"name": "WORD", "value": "first"}, {"name": "WORD", "value": "last"}]),
)
DOWNWARD = add_pod(
    "downward",
    script(
        "app",
        "cat /info/name; echo; cat /info/labels; echo; cat /info/limit; echo; stat -L -c %a /info/name /info/limit;"
        "echo $SIZE $WHERE",
        resources={"limits": {"memory": "64Mi"}},
        env=[
            {"name": "WHERE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}},
            {"name": "SIZE", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
        ],
        volumeMounts=[{"name": "info", "mountPath": "/info", "mountPropagation": "None"}],
    ),
    metadata={"labels": {"one": "two"}, "annotations": {"three": "four"}},
    volumes=[
        {
            "name": "info",
            "downwardAPI": {
                "defaultMode": 0o440,
                "items": [
                    {"path": "name", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
                    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                    {
                        "path": "limit",
                        "mode": 0o400,
                        "resourceFieldRef": {"containerName": "app", "resource": "limits.memory", "divisor": "1Mi"},
                    },
                ],
            },
        }
    ],
)
PORTS = add_pod(
    "ports",
    script(
        "app",
        "mkdir /page; echo published > /page/index.html; httpd -p 8000 -h /page",
        ports=[
            {"containerPort": 8000, "hostPort": 18082, "hostIP": "127.0.0.1", "protocol": "TCP"},
            {"containerPort": 8000, "hostPort": 18082, "protocol": "UDP"},
        ],
    ),
)


def test_references_to_variables_in_arguments_and_values(pods: AppliedPods) -> None:
    # The first argument becomes the name of the shell; the shell prints the others and expands none of these
    # references.
    lines = pods.output(*EXPANDED).splitlines()
    assert lines[:6] == ["oneone", "$(FIRST)", "$(NOBODY)", "one and $(BEHIND), $(FIRST)", "a $(FIRST", "$FIRST"]
    assert lines[6:] == ["one and $(BEHIND), $(FIRST)"]


def test_references_to_variables_in_a_command(pods: AppliedPods) -> None:
    assert pods.output(*EXPANDED_COMMAND) == "value\n"


def test_the_working_folder_is_created(pods: AppliedPods) -> None:
    assert pods.output(*ELSEWHERE) == "/tmp/made/for/it\n"


def test_the_last_of_two_variables_of_a_name_wins(pods: AppliedPods) -> None:
    assert pods.output(*SAME_VARIABLE) == "last\n"


def test_a_pod_is_its_own_host(pods: AppliedPods) -> None:
    assert pods.output(NAMED) == "named-as-its-pod\nnamed-as-its-pod\n"


def test_a_container_gets_fields_of_its_pod(pods: AppliedPods) -> None:
    assert pods.output(DOWNWARD) == 'downward\none="two"\n64\n440\n400\n64 default\n'
    assert pods.differences(DOWNWARD) == []


def test_ports_of_the_node(pods: AppliedPods) -> None:
    assert pods.output(PORTS) == ""
    assert pods.node.engine.namespace.http(18082, timeout=HANG_SECONDS).body == b"published\n"
    assert pods.differences(PORTS) == []
