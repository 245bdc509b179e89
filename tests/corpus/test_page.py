"""docs/pod-fields.md matches the code."""

from chronolet.rules.validation.honoured_table import TABLE
from tests.corpus.fields import fields
from tests.corpus.page import COMMAND, PAGE, page, verdict_text


def test_the_page_is_up_to_date() -> None:
    written = PAGE.read_text() if PAGE.exists() else ""
    assert written == page(), f"{PAGE.name} is out of date: {COMMAND}"


def test_every_row_of_the_table_matches_a_field() -> None:
    """A row that matches no field of a Pod is a typo."""
    patterns = [one.path.replace("[]", "") for one in fields()]
    lost = [path for path in TABLE if not any(f"{pattern}.".startswith(_prefix(path)) for pattern in patterns)]
    assert lost == []


def _prefix(path: str) -> str:
    """Return the prefix of the paths that a row covers. A `*` in the table matches any key or field without a row of
    its own.
    """
    return path.removesuffix("*") if path.endswith("*") else f"{path}."


def test_verdicts_as_the_page_shows_them() -> None:
    verdicts = {one.path: verdict_text(one) for one in fields()}
    assert verdicts["spec.restartPolicy"] == "honoured"
    assert verdicts["spec.tolerations"] == "warning"
    assert verdicts["spec.runtimeClassName"] == "**blocks**"
    assert verdicts["spec.preemptionPolicy"] == "warning; only `PreemptLowerPriority` honoured"
    assert verdicts["spec.os.name"] == "**blocks**; only `linux` honoured"
    assert verdicts["spec.setHostnameAsFQDN"] == "honoured"
