"""Integrations of Steady Queue with other packages. Each is an app of its own.

Nothing else imports them, or what they integrate.
"""
