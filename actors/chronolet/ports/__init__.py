"""What the domain needs from outside, as Protocols and plain data. Implementations and fakes live in `adapters`."""
