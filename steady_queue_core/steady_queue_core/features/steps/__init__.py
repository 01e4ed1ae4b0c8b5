"""Durable steps: what a task has done already, and the sleeps between."""
