from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """A table for the jobs that are kept for a time of their own."""

    dependencies = [("steady_queue", "0003_job_metadata")]

    operations = [
        migrations.CreateModel(
            name="Retention",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="retention",
                        serialize=False,
                        to="steady_queue.job",
                    ),
                ),
                ("expires_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "steady_queue_retentions",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["expires_at"], name="steady_queue_retention_expires")
                ],
            },
        ),
    ]
