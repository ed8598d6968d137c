"""Measurements out of what training runs and NCCL's tests print."""
