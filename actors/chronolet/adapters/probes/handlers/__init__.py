"""The four types of probes: exec, HTTP GET, TCP and gRPC, with what HTTP and TCP share."""
