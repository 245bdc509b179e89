"""What the domain needs from outside, as Protocols and plain data. Implementations live in `adapters`, fakes beside them."""
