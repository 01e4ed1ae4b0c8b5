from __future__ import annotations

from django.db import migrations, models

import steady_queue_core.models.fields


class Migration(migrations.Migration):
    """A table for how processes have ended that did not end by themselves."""

    dependencies = [
        ("steady_queue", "0015_overview"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProcessEnd",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("process_id", models.BigIntegerField()),
                (
                    "name",
                    steady_queue_core.models.fields.ExactCharField(max_length=255, unique=True),
                ),
                ("kind", models.CharField(max_length=32)),
                ("pid", models.PositiveIntegerField()),
                ("hostname", models.CharField(max_length=255)),
                ("supervisor_id", models.BigIntegerField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("last_heartbeat_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField()),
                ("reason", models.CharField(max_length=32)),
                ("held", models.PositiveIntegerField()),
                ("lost", models.PositiveIntegerField()),
                ("details", steady_queue_core.models.fields.ExactTextField(default="{}")),
            ],
            options={
                "verbose_name": "ended process",
                "verbose_name_plural": "ended processes",
                "db_table": "steady_queue_process_ends",
                "default_permissions": ("view",),
            },
        ),
    ]
