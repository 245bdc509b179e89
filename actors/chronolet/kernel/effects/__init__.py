"""Runs effects: workers, concurrency limits, retries and timers."""
