"""Time limits: how long an attempt may take, and how long it may still run after that."""
