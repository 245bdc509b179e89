"""The stream `probe_results`: the last raw outcomes of each probe."""
