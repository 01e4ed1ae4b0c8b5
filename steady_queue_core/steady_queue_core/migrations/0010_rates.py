from __future__ import annotations

from django.db import migrations, models

import steady_queue_core.models.fields


class Migration(migrations.Migration):
    """A table for when the next jobs of keys with a rate limit may start."""

    dependencies = [("steady_queue", "0009_schedules")]

    operations = [
        migrations.CreateModel(
            name="Rate",
            fields=[
                (
                    "key",
                    steady_queue_core.models.fields.ExactCharField(
                        max_length=255, primary_key=True, serialize=False
                    ),
                ),
                ("gate", models.BigIntegerField()),
                ("line", models.BigIntegerField()),
                ("shift", models.BigIntegerField()),
                ("limit", models.BigIntegerField()),
                ("period", models.BigIntegerField()),
                ("burst", models.BigIntegerField()),
            ],
            options={
                "db_table": "steady_queue_rates",
                "default_permissions": ("view",),
                "verbose_name": "rate limit",
            },
        ),
    ]
