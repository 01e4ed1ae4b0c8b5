from __future__ import annotations

from django.db import migrations

import steady_queue_core.models.fields


class Migration(migrations.Migration):
    dependencies = [("steady_queue", "0002_cancel_permission")]

    operations = [
        migrations.AddField(
            model_name="job",
            name="metadata",
            field=steady_queue_core.models.fields.ExactTextField(null=True),
        ),
    ]
