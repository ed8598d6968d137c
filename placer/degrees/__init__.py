"""The degrees and the placement of a job, chosen together."""
