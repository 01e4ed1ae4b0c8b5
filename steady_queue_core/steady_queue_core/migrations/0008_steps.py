from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import steady_queue_core.models.fields


class Migration(migrations.Migration):
    """A table for the steps that jobs need not take again."""

    dependencies = [("steady_queue", "0007_batches")]

    operations = [
        migrations.CreateModel(
            name="Step",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", steady_queue_core.models.fields.ExactCharField(max_length=255)),
                ("position", models.IntegerField()),
                ("token", models.BigIntegerField()),
                ("is_sleep", models.BooleanField()),
                ("data", steady_queue_core.models.fields.ExactTextField()),
                ("stored_at", models.DateTimeField()),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="steady_queue.job",
                    ),
                ),
            ],
            options={
                "db_table": "steady_queue_steps",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("job", "name"), name="steady_queue_steps_name")
                ],
            },
        ),
    ]
