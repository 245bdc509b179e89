"""The store in Redis: connections, the function library, steps, blocking reads."""
