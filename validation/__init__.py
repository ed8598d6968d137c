"""Public measurements against the cost model, as pages of ``docs/evidence``."""
