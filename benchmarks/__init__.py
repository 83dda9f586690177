"""Benchmarks, run as modules from the root or as scripts: both find what they share, and the product, all the same."""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path += [str(_HERE), str(_HERE.parent / "platform")]
