"""Errors, traces and check-ins of a queue for Sentry. Needs the extra ``sentry``.

Add ``"steady_queue_core.contrib.sentry"`` to ``INSTALLED_APPS``.
"""
