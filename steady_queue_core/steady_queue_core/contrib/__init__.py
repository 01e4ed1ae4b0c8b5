"""Integrations of Steady Queue with other packages. Each is an app of its own."""
