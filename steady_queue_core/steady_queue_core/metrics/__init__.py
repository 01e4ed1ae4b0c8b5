"""Metrics for Prometheus: gauges read at the scrape, counters from the statistics."""

from __future__ import annotations

from .exposition import metrics_text

__all__ = ["metrics_text"]
