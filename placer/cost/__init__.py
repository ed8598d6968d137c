"""What a placement costs: collectives, contention, schedule, step time, hop cost."""

# Steps of one run in public records differ by this share: less can never be measured.
JITTER = 5e-4

# Of two choices that share neither work nor nodes, with 95 % confidence; measured where
# public runs differ in machines and replicas (``docs/evidence/validation.md``).
DIFFERENCE = 0.01
