"""Entry point of `python -m chronolet.cli`."""

from chronolet.cli.loading import main

main()
