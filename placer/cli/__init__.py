"""Commands of ``placer``, most of them a file each.

What is wrong with an input is raised as one `placer.InputError` with all problems and
their places, by whatever function here finds it; docstrings do not say so again.
"""
