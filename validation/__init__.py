"""Public measurements against the cost model, as the page ``docs/validation.md``."""
