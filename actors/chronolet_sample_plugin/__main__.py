"""The entry point of `python -m chronolet_sample_plugin`."""

from chronolet_sample_plugin.main import main

main()
