"""The same placement on other nodes: pinned ranks, ranks kept in place."""
