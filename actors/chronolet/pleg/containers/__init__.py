"""Turns what the runtime reports about containers into pleg's events. Pure."""
