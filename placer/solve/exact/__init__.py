"""Small jobs to the end: one CP-SAT model of where each set of the job lies."""
