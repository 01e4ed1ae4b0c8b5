"""Unique jobs: at most one live job for a key."""
