from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """The permissions to add and to remove recurring tasks."""

    dependencies = [
        ("steady_queue", "0017_job_permissions"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="recurringtask",
            options={
                "default_permissions": ("view", "add", "change", "delete"),
                "permissions": (("run_recurringtask", "Can run recurring tasks now"),),
            },
        ),
    ]
