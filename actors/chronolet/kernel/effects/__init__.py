"""Running effects: workers, concurrency limits, retries and timers."""
