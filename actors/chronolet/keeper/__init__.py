"""The keeper: archives the log, trims it, and records events of the disk reserve. One entity: the node."""
