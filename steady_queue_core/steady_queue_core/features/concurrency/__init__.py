"""Concurrency limits: how many jobs that share a key may run at a time."""
