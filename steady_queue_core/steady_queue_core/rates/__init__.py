"""Where pickles of tasks, which caches may hold, have their rate limits."""
