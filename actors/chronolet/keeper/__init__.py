"""The keeper archives the log, trims it, and records events about the disk reserve. Its only entity is the node."""
