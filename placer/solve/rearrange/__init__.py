"""A placement moved to other nodes: ranks kept in place, the most useful rest."""
