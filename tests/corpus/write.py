"""Rewrites docs/pod-fields.md: `python -m tests.corpus.write`."""

from tests.corpus.page import PAGE, page


def main() -> None:
    PAGE.write_text(page())
    print(PAGE)  # noqa: T201


if __name__ == "__main__":
    main()
