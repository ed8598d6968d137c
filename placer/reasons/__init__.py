"""Where one rank, group or host of a plan is, what it costs, what would be instead."""
