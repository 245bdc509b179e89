"""Records what each decision was based on, in the data of the first event that follows from it (docs/adr/0044)."""
