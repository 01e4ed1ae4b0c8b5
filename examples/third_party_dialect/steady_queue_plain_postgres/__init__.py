"""A PostgreSQL dialect of Steady Queue: portable building blocks, and one hook of its own."""
