"""The interfaces to the outside world: Protocols and plain data. Implementations and fakes live in `adapters`."""
