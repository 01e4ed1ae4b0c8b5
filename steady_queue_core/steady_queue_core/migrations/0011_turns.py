from __future__ import annotations

from typing import Any

from django.db import migrations, models

import steady_queue_core.models.fields


def take_over_ids(apps: Any, schema_editor: Any) -> None:
    ready = apps.get_model("steady_queue", "ReadyExecution")
    ready.objects.using(schema_editor.connection.alias).update(turn=models.F("job_id"))


class Migration(migrations.Migration):
    """Turns of ready jobs: in their order, rather than that of their ids, jobs are claimed."""

    dependencies = [("steady_queue", "0010_rates")]

    operations = [
        migrations.AddField("readyexecution", "turn", models.FloatField(db_default=0.0)),
        migrations.RunPython(take_over_ids, migrations.RunPython.noop),
        migrations.RemoveIndex("readyexecution", "steady_queue_ready_poll"),
        migrations.RemoveIndex("readyexecution", "steady_queue_ready_queue"),
        migrations.AddIndex(
            "readyexecution",
            models.Index(fields=["rank", "turn"], name="steady_queue_ready_poll"),
        ),
        migrations.AddIndex(
            "readyexecution",
            models.Index(fields=["queue_name", "rank", "turn"], name="steady_queue_ready_queue"),
        ),
        migrations.CreateModel(
            name="Turn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("queue_name", steady_queue_core.models.fields.ExactCharField(max_length=255)),
                ("rank", models.SmallIntegerField()),
                ("key", steady_queue_core.models.fields.ExactCharField(max_length=255)),
                ("turn", models.FloatField()),
            ],
            options={
                "db_table": "steady_queue_turns",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("queue_name", "rank", "key"), name="steady_queue_turns_key"
                    )
                ],
            },
        ),
    ]
