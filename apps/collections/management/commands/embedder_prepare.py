from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.collections.embedders.folder import model_verify
from apps.collections.embedders.minilm import Precision, is_prepared, prepare_model
from apps.collections.embedders.minilm_build import table_path
from apps.collections.embedders.registry import BUILT_IN, make_embedder, parse_embedder
from apps.collections.index.embedding import default_setting, installed_model
from basics.errors import DomainError


class Command(BaseCommand):
    help = "Build the local embedding model in the data directory, so that the first document need not wait for it."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            name = parse_embedder(default_setting())
            if name.provider != "local":
                self.stdout.write(f"Embeddings come from {name.provider}; there is nothing to prepare.")
                return
            if name.model not in BUILT_IN:
                self._verify()
                return
            precision: Precision = "fp32" if name.model.endswith(":fp32") else "int8"
            data_dir = Path(settings.DATA_DIR)
            if is_prepared(data_dir, precision):
                self.stdout.write("The embedding model is ready.")
                return
            began = time.monotonic()
            path = prepare_model(data_dir, precision)
        except DomainError as error:
            raise CommandError(error.message) from error
        megabytes = sum(file.stat().st_size for file in (path, table_path(path))) / 1e6
        seconds = time.monotonic() - began
        self.stdout.write(f"Built the embedding model: {path.name}, {megabytes:.0f} MB, in {seconds:.1f} s.")

    def _verify(self) -> None:
        """Say now, and not with the first document, when this machine lacks an installed model."""
        model = installed_model(default_setting())
        if model is None:
            make_embedder(default_setting(), data_dir=Path(settings.DATA_DIR))  # says what is wrong
        else:
            model_verify(model)
            self.stdout.write(f"The embedding model local/{model.name} is here.")
