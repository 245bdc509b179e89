"""docs/pod-fields.md says what the code does."""

from chronolet.rules.validation.honoured_table import TABLE
from tests.corpus.fields import fields
from tests.corpus.page import COMMAND, PAGE, page, stands


def test_the_page_is_up_to_date() -> None:
    written = PAGE.read_text() if PAGE.exists() else ""
    assert written == page(), f"{PAGE.name} is out of date: {COMMAND}"


def test_every_verdict_of_the_table_stands_on_a_field_of_the_page() -> None:
    """A row of the table that no field of a Pod answers to is a slip of the pen."""
    patterns = [one.path.replace("[]", "") for one in fields()]
    lost = [path for path in TABLE if not any(f"{pattern}.".startswith(_prefix(path)) for pattern in patterns)]
    assert lost == []


def _prefix(path: str) -> str:
    """A `*` in the table stands for the fields that it does not name."""
    return path.removesuffix("*") if path.endswith("*") else f"{path}."


def test_the_words_of_the_page() -> None:
    said = {one.path: stands(one) for one in fields()}
    assert said["spec.restartPolicy"] == "honoured"
    assert said["spec.tolerations"] == "warning"
    assert said["spec.runtimeClassName"] == "**blocks**"
    assert said["spec.preemptionPolicy"] == "warning; only `PreemptLowerPriority` honoured"
    assert said["spec.os.name"] == "**blocks**; only `linux` honoured"
    assert said["spec.setHostnameAsFQDN"] == "honoured"
