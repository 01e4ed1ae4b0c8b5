from __future__ import annotations

from django.db import migrations, models

import steady_queue_core.models.fields


class Migration(migrations.Migration):
    """Tables for what has become of jobs, and how many there were, by time."""

    dependencies = [
        ("steady_queue", "0012_shares"),
    ]

    operations = [
        migrations.CreateModel(
            name="Sample",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("minute", models.IntegerField()),
                (
                    "queue_name",
                    steady_queue_core.models.fields.ExactCharField(
                        blank=True, max_length=255, verbose_name="queue"
                    ),
                ),
                ("ready", models.BigIntegerField()),
                ("oldest_wait_ms", models.BigIntegerField()),
                ("scheduled", models.BigIntegerField(null=True)),
                ("blocked", models.BigIntegerField(null=True)),
                ("running", models.BigIntegerField(null=True)),
                ("failed", models.BigIntegerField(null=True)),
            ],
            options={
                "db_table": "steady_queue_samples",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("minute", "queue_name"), name="steady_queue_samples_key"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Statistic",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("span", models.SmallIntegerField()),
                ("minute", models.IntegerField()),
                ("stored_minute", models.IntegerField()),
                (
                    "queue_name",
                    steady_queue_core.models.fields.ExactCharField(
                        blank=True, max_length=255, verbose_name="queue"
                    ),
                ),
                (
                    "task_path",
                    steady_queue_core.models.fields.ExactCharField(
                        blank=True, max_length=255, verbose_name="task"
                    ),
                ),
                ("writer", models.BigIntegerField()),
                ("enqueued", models.BigIntegerField(default=0)),
                ("finished", models.BigIntegerField(default=0)),
                ("failed", models.BigIntegerField(default=0)),
                ("retried", models.BigIntegerField(default=0)),
                ("released", models.BigIntegerField(default=0)),
                ("lost", models.BigIntegerField(default=0)),
                ("wait_ms", models.BigIntegerField(default=0)),
                ("run_ms", models.BigIntegerField(default=0)),
                ("wait_max", models.BigIntegerField(default=0)),
                ("run_max", models.BigIntegerField(default=0)),
                ("wait_histogram", models.CharField(blank=True, default="", max_length=400)),
                ("run_histogram", models.CharField(blank=True, default="", max_length=400)),
            ],
            options={
                "db_table": "steady_queue_statistics",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("span", "minute", "queue_name", "task_path", "writer"),
                        name="steady_queue_statistics_key",
                    )
                ],
            },
        ),
    ]
