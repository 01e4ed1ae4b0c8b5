from __future__ import annotations

from django.db import migrations, models

import steady_queue_core.models.fields


class Migration(migrations.Migration):
    """A column for what failures with the same cause have in common.

    Processes of the previous version go on while it runs: they insert rows without it.
    """

    dependencies = [("steady_queue", "0013_statistics")]

    operations = [
        migrations.AddField(
            "failedexecution",
            "fingerprint",
            steady_queue_core.models.fields.ExactCharField(max_length=16, null=True),
        ),
        migrations.AddIndex(
            "failedexecution",
            models.Index(fields=["fingerprint", "created_at"], name="steady_queue_failed_group"),
        ),
    ]
