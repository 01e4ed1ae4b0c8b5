"""Sharding: which shard a call goes to."""
