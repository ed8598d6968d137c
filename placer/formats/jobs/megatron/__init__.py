"""Megatron-LM: scripts, files of arguments, the block of a log, configurations.

Source: NVIDIA/Megatron-LM d98e8a64, ``megatron/training/arguments.py`` unless said
otherwise; for its fork deepspeedai/Megatron-DeepSpeed 4efb479d, the file of that name.
"""
