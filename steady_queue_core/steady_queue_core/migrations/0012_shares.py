from __future__ import annotations

from django.db import migrations, models

import steady_queue_core.models.fields


class Migration(migrations.Migration):
    """A table for the weights of keys of fair queues."""

    dependencies = [("steady_queue", "0011_turns")]

    operations = [
        migrations.CreateModel(
            name="Share",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "queue_name",
                    steady_queue_core.models.fields.ExactCharField(
                        max_length=255, verbose_name="queue"
                    ),
                ),
                (
                    "key",
                    steady_queue_core.models.fields.ExactCharField(blank=True, max_length=255),
                ),
                ("weight", models.FloatField()),
            ],
            options={
                "db_table": "steady_queue_shares",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("queue_name", "key"), name="steady_queue_shares_key"
                    )
                ],
            },
        ),
    ]
