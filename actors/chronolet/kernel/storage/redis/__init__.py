"""The store on Redis: connections, the Function library, steps, blocking reads."""
