"""Programs made from a grammar, and CPython as their judge: what ``benchmarks/code_mode_differential.py`` compares."""
