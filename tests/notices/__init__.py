"""Tests of notices."""
