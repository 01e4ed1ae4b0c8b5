from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """A permission to cancel jobs."""

    dependencies = [("steady_queue", "0001_initial")]

    operations = [
        migrations.AlterModelOptions(
            name="job",
            options={
                "default_permissions": ("view",),
                "permissions": (
                    ("retry_job", "Can retry failed jobs"),
                    ("discard_job", "Can discard jobs"),
                    ("cancel_job", "Can cancel jobs"),
                    ("run_job", "Can run jobs now that wait"),
                    ("view_arguments", "Can view arguments and results of jobs"),
                ),
            },
        ),
    ]
