"""The store on Redis: connections, the function library, steps, blocking reads."""
