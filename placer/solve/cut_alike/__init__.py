"""Pipelines cut alike, so that gradient groups have several members in a domain."""
