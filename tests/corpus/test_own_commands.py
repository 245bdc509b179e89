"""What a container is told to run, and what it finds around itself."""

import pytest

from tests.corpus import images
from tests.corpus.own import Ran, joins, own, says
from tests.support.scratch import HANG_SECONDS

pytestmark = pytest.mark.docker

COMMANDS = own("commands", enableServiceLinks=False)
EXPANDED = joins(
    COMMANDS,
    {
        "name": "expanded",
        "image": images.SHELL,
        "command": ["/bin/sh", "-c", 'for one in "$@"; do echo "$one"; done; echo "$LATER"; echo end; sleep 3600'],
        "args": ["$(FIRST)", "$(FIRST)$(FIRST)", "$$(FIRST)", "$(NOBODY)", "$(LATER)", "a $(FIRST", "$FIRST"],
        "env": [{"name": "FIRST", "value": "one"}, {"name": "LATER", "value": "$(FIRST) and $(BEHIND), $$(FIRST)"}],
    },
)
EXPANDED_COMMAND = joins(
    COMMANDS,
    {
        "name": "expanded-command",
        "image": images.SHELL,
        "command": ["$(SHELL)", "-c", "echo $(WORD); echo end; sleep 3600"],
        "env": [{"name": "SHELL", "value": "/bin/sh"}, {"name": "WORD", "value": "said"}],
    },
)
ELSEWHERE = joins(COMMANDS, says("elsewhere", "pwd", workingDir="/tmp/made/for/it"))
NAMED = own("named-as-its-pod", says("app", "hostname; cat /proc/sys/kernel/hostname"))
SAME_VARIABLE = joins(
    COMMANDS,
    says("variable-twice", "echo $WORD", env=[{"name": "WORD", "value": "first"}, {"name": "WORD", "value": "last"}]),
)
TELLS = own(
    "tells-of-itself",
    says(
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
PORTS = own(
    "ports",
    says(
        "app",
        "mkdir /page; echo published > /page/index.html; httpd -p 8000 -h /page",
        ports=[
            {"containerPort": 8000, "hostPort": 18082, "hostIP": "127.0.0.1", "protocol": "TCP"},
            {"containerPort": 8000, "hostPort": 18082, "protocol": "UDP"},
        ],
    ),
)


def test_references_to_variables_in_arguments_and_values(ran: Ran) -> None:
    # The first argument is the shell's own name; a shell shows what it was given and expands no reference of these.
    said = ran.output(*EXPANDED).splitlines()
    assert said[:6] == ["oneone", "$(FIRST)", "$(NOBODY)", "one and $(BEHIND), $(FIRST)", "a $(FIRST", "$FIRST"]
    assert said[6:] == ["one and $(BEHIND), $(FIRST)"]


def test_references_to_variables_in_a_command(ran: Ran) -> None:
    assert ran.output(*EXPANDED_COMMAND) == "said\n"


def test_the_folder_that_it_begins_in_is_made(ran: Ran) -> None:
    assert ran.output(*ELSEWHERE) == "/tmp/made/for/it\n"


def test_the_last_of_two_variables_of_one_name_counts(ran: Ran) -> None:
    assert ran.output(*SAME_VARIABLE) == "last\n"


def test_a_pod_is_its_own_host(ran: Ran) -> None:
    assert ran.output(NAMED) == "named-as-its-pod\nnamed-as-its-pod\n"


def test_what_a_container_is_told_of_its_pod(ran: Ran) -> None:
    assert ran.output(TELLS) == 'tells-of-itself\none="two"\n64\n440\n400\n64 default\n'
    assert ran.differences(TELLS) == []


def test_ports_of_the_node(ran: Ran) -> None:
    assert ran.output(PORTS) == ""
    assert ran.node.engine.namespace.http(18082, timeout=HANG_SECONDS).body == b"published\n"
    assert ran.differences(PORTS) == []
