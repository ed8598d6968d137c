"""Which differences between steps nobody can tell, as shares of a step.

Of two placements of a job the model knows more, and says how sure it is of what one of
them saves (`placer.cost.difference`).
"""

# Steps of one run in public records: less can never be measured.
JITTER = 5e-4

# Two choices that share neither work nor nodes, with 95 % confidence; measured where
# public runs differ in machines and replicas (``docs/validation.md``).
DIFFERENCE = 0.01
