from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import steady_queue_core.models.fields


class Migration(migrations.Migration):
    """A table for the keys that at most one job has at a time."""

    dependencies = [("steady_queue", "0004_retention")]

    operations = [
        migrations.CreateModel(
            name="UniqueKey",
            fields=[
                (
                    "key",
                    steady_queue_core.models.fields.ExactCharField(
                        max_length=255, primary_key=True, serialize=False
                    ),
                ),
                ("expires_at", models.DateTimeField(null=True)),
                ("ticket", models.BigIntegerField()),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="unique_keys",
                        to="steady_queue.job",
                    ),
                ),
            ],
            options={
                "db_table": "steady_queue_unique_keys",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["expires_at"], name="steady_queue_unique_expires")
                ],
            },
        ),
    ]
