"""Benchmarks, run as modules from the root or as scripts: both find what they share in this folder."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
