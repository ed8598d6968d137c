"""Pipelines cut at the same stages, so that gradient groups share domains."""
