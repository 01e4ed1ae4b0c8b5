"""Delivery: what becomes of a job that was interrupted, and when its task takes effect."""
