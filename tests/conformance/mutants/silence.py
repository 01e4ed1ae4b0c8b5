"""Limits that do harm."""

from __future__ import annotations

from .mutant import fails


@fails("a_limited_connection_works_and_what_the_project_has_set_stands", hook="limit_silence")
def opens_the_connection(connection, seconds):
    connection.ensure_connection()


@fails("a_limited_connection_works_and_what_the_project_has_set_stands", hook="limit_silence")
def overrides_the_project(connection, seconds):
    connection.settings_dict["OPTIONS"]["timeout"] = seconds


@fails("a_limited_connection_works_and_what_the_project_has_set_stands", hook="limit_silence")
def sets_what_the_driver_does_not_know(connection, seconds):
    connection.settings_dict["OPTIONS"]["no_such_option"] = 1
