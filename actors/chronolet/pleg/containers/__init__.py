"""From what the runtime shows of containers to pleg's events. Pure."""
