from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """Permissions to move and reschedule jobs, and to enqueue them again."""

    dependencies = [("steady_queue", "0016_process_ends")]

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
                    ("change_job", "Can move and reschedule jobs that wait"),
                    ("enqueue_job", "Can enqueue jobs again"),
                    ("view_arguments", "Can view arguments and results of jobs"),
                ),
            },
        ),
    ]
