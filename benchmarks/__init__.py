"""Benchmarks, each a program: ``python -m benchmarks.NAME`` finds what they share, as ``python benchmarks/NAME.py`` does."""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "platform")]
