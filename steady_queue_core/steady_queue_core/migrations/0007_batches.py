from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import steady_queue_core.models.fields


class Migration(migrations.Migration):
    """Tables for batches, their members, and the jobs that wait for members."""

    dependencies = [("steady_queue", "0006_checkpoints")]

    operations = [
        migrations.CreateModel(
            name="WaitingExecution",
            fields=[
                ("created_at", models.DateTimeField()),
                (
                    "job",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="%(class)s",
                        serialize=False,
                        to="steady_queue.job",
                    ),
                ),
                ("queue_name", steady_queue_core.models.fields.ExactCharField(max_length=255)),
                ("rank", models.SmallIntegerField(default=0)),
                ("token", models.BigIntegerField(default=0)),
                ("width", models.IntegerField()),
                ("due_at", models.DateTimeField(null=True)),
                ("delay", models.DurationField(null=True)),
                (
                    "concurrency_key",
                    steady_queue_core.models.fields.ExactCharField(max_length=255, null=True),
                ),
            ],
            options={
                "db_table": "steady_queue_waiting_executions",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="BatchMember",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    steady_queue_core.models.fields.ExactCharField(default="", max_length=255),
                ),
                ("state", models.SmallIntegerField(default=0)),
                (
                    "job",
                    models.OneToOneField(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="membership",
                        to="steady_queue.job",
                    ),
                ),
            ],
            options={
                "db_table": "steady_queue_batch_members",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="JobBatch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", steady_queue_core.models.fields.ExactCharField(max_length=16)),
                (
                    "description",
                    steady_queue_core.models.fields.ExactCharField(default="", max_length=255),
                ),
                ("backend_name", steady_queue_core.models.fields.ExactCharField(max_length=255)),
                ("metadata", steady_queue_core.models.fields.ExactTextField(null=True)),
                ("callbacks", steady_queue_core.models.fields.ExactTextField(null=True)),
                ("created_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("cancelled_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("total", models.IntegerField(null=True)),
                ("failed", models.IntegerField(null=True)),
                (
                    "member",
                    models.OneToOneField(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="nested",
                        to="steady_queue.batchmember",
                    ),
                ),
            ],
            options={
                "verbose_name": "batch",
                "verbose_name_plural": "batches",
                "db_table": "steady_queue_batches",
                "permissions": (
                    ("cancel_batch", "Can cancel batches"),
                    ("retry_batch", "Can retry batches"),
                ),
                "default_permissions": ("view",),
            },
        ),
        migrations.AddField(
            model_name="batchmember",
            name="batch",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="members",
                to="steady_queue.jobbatch",
            ),
        ),
        migrations.CreateModel(
            name="Dependency",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("run_when", models.SmallIntegerField()),
                ("state", models.SmallIntegerField()),
                ("number", models.IntegerField()),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dependencies",
                        to="steady_queue.job",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dependents",
                        to="steady_queue.batchmember",
                    ),
                ),
            ],
            options={
                "db_table": "steady_queue_dependencies",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["job", "state", "id"], name="steady_queue_dependency_open")
                ],
            },
        ),
        migrations.AddIndex(
            model_name="jobbatch",
            index=models.Index(fields=["finished_at"], name="steady_queue_batches_finished"),
        ),
        migrations.AddIndex(
            model_name="batchmember",
            index=models.Index(fields=["batch", "state", "id"], name="steady_queue_members_state"),
        ),
    ]
