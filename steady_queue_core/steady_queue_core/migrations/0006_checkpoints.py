from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import steady_queue_core.models.fields


class Migration(migrations.Migration):
    """A table for what the attempts of a job store for the next one, and for their progress."""

    dependencies = [("steady_queue", "0005_unique_keys")]

    operations = [
        migrations.CreateModel(
            name="Checkpoint",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="checkpoint",
                        serialize=False,
                        to="steady_queue.job",
                    ),
                ),
                ("token", models.BigIntegerField()),
                ("data", steady_queue_core.models.fields.ExactTextField(null=True)),
                ("done", models.FloatField(null=True)),
                ("total", models.FloatField(null=True)),
                (
                    "text",
                    steady_queue_core.models.fields.ExactCharField(default="", max_length=200),
                ),
                ("updated_at", models.DateTimeField()),
            ],
            options={"db_table": "steady_queue_checkpoints", "default_permissions": ()},
        ),
    ]
