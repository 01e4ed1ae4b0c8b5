from __future__ import annotations

from django.db import migrations

from steady_queue_core.models.tuning import TuneTables


class Migration(migrations.Migration):
    dependencies = [("steady_queue", "0001_initial")]

    operations = [TuneTables()]
