"""The workers of pleg's two standing effects, which call the runtime."""
