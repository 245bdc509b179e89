"""What a container is told to run, and what it finds around itself."""

import pytest

from tests.corpus import images
from tests.corpus.own import Ran, joins, own, says

pytestmark = pytest.mark.docker

COMMANDS = own("commands")
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
