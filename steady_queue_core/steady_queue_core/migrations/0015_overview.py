from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """The permission to see the overview, and its place in the admin."""

    dependencies = [
        ("steady_queue", "0014_error_groups"),
    ]

    operations = [
        migrations.CreateModel(
            name="Overview",
            fields=[],
            options={
                "verbose_name": "overview",
                "verbose_name_plural": "overview",
                "default_permissions": ("view",),
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("steady_queue.statistic",),
        ),
    ]
