"""Endings that a task chooses: how often its job may come back."""
