"""What a placement costs: collectives, contention, schedule, critical path, hop cost."""
