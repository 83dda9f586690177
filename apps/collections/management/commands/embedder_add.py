from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.collections.embedders.folder import Checked, folder_check
from apps.collections.embedders.sentence_options import POOLINGS
from apps.collections.index.embedder_install import embedder_install
from basics.errors import DomainError

_SAID = ("file", "pooling", "query_prefix", "passage_prefix", "dimensions", "max_tokens")


class Command(BaseCommand):
    help = (
        "Check a sentence model (an ONNX file with tokenizer.json) in a folder of this machine, and install it as an "
        "embedder that collections can choose. Nothing is downloaded. Anything not specified is read from "
        "the folder's files."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "folder", type=Path, help="the model's folder, or its folder in a Hugging Face hub cache"
        )
        parser.add_argument("--name", default="", help="chosen as local/NAME (default: the folder's name)")
        parser.add_argument(
            "--file", help="the ONNX file in the folder if there are several, e.g. onnx/model_int8.onnx"
        )
        parser.add_argument("--pooling", choices=POOLINGS, help="how one vector is made from the tokens'")
        parser.add_argument(
            "--query-prefix", metavar="TEXT", help='put before each question, for example "query: "'
        )
        parser.add_argument(
            "--passage-prefix", metavar="TEXT", help='put before each passage, for example "passage: "'
        )
        parser.add_argument(
            "--dimensions", type=int, help="keep only the first N numbers, for models trained for that"
        )
        parser.add_argument(
            "--max-tokens", type=int, help="tokens per text; the rest of a longer text is ignored"
        )
        parser.add_argument("--check", action="store_true", help="only check; install nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = folder_check(
                options["folder"], name=options["name"], said={field: options[field] for field in _SAID}
            )
            self._tell(found)
            if options["check"]:
                self.stdout.write("The model can be used here. Nothing was installed (--check).")
                return
            row = embedder_install(found.model)
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(
            f"Installed as {row}. Choose it in a collection's settings under Embedding model, or for new collections with "
            f"GROUNDWORK_EMBEDDER={row}. Every machine that serves pages or runs workers needs {row.folder}; check each "
            "with embedder_add --check."
        )

    def _tell(self, found: Checked) -> None:
        model, options = found.model, found.model.options
        lines = {
            "model": f"{options.file} in {model.path}",
            "dimensions": f"{model.dimensions:,}",
            "pooling": "in the model's graph" if options.pooling == "pooled" else options.pooling,
            "longest text": f"{options.max_tokens:,} tokens",
            "query prefix": repr(options.query_prefix) if options.query_prefix else "none",
            "passage prefix": repr(options.passage_prefix) if options.passage_prefix else "none",
            "similarity": f"{found.alike:.2f} of sentences that say the same, {found.apart:.2f} of others",
            "speed": f"{found.per_second:.1f} passages of 120 words a second on one processor",
        }
        for name, value in lines.items():
            self.stdout.write(f"{name + ':':16}{value}")
        if found.alike <= found.apart:
            self.stderr.write(
                "Sentences that say the same aren't nearer to each other than others: check pooling and prefixes on the "
                "model's page before you use it."
            )
