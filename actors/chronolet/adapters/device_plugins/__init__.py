"""Device plugins over gRPC on unix sockets: see `ports.device_plugins`. `plugins` has the whole."""
