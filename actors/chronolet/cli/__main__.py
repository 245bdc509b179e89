"""`python -m chronolet.cli`."""

from chronolet.cli.main import main

main()
