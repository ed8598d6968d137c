"""A placement moved to other nodes: pinned ranks, ranks kept in place."""
