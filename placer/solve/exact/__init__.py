"""Small jobs to the end: one CP-SAT model of where each part of the job lies."""
