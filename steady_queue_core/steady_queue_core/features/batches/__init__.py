"""Batches: jobs that belong together, and what follows when all of them have ended."""
