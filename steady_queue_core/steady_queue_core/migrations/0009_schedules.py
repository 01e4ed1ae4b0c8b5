from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Columns for what limits the runs of recurring tasks."""

    dependencies = [("steady_queue", "0008_steps")]

    operations = [
        migrations.AddField("recurringtask", "starts_at", models.DateTimeField(null=True)),
        migrations.AddField("recurringtask", "ends_at", models.DateTimeField(null=True)),
        migrations.AddField("recurringtask", "repeats", models.IntegerField(null=True)),
        migrations.AddField(
            "recurringtask",
            "overlap",
            models.CharField(db_default="allow", default="allow", max_length=16),
        ),
        migrations.AddField("recurringtask", "runs", models.IntegerField(db_default=0, default=0)),
        migrations.AddField("recurringtask", "last_job_id", models.BigIntegerField(null=True)),
        migrations.AddField("recurringtask", "waiting_at", models.DateTimeField(null=True)),
    ]
