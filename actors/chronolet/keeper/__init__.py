"""The keeper: archives the log and trims it, and tells what happened to the disk it lies on. One entity: the node."""
