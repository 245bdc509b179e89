"""Unix sockets and gRPC on them."""
