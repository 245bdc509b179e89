"""Unix sockets, and gRPC over them."""
