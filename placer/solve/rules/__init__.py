"""The search under rules about hosts and failures."""
