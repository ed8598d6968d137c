"""What a placement costs: collectives, contention, schedule, step time, hop cost."""
