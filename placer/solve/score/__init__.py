"""One evaluator of every objective, with exact increments."""
