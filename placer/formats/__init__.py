"""Files of other programs: machines and jobs in their formats.

What is wrong with a text is raised as one `placer.InputError` with all problems and
their places, by whatever function here finds it; docstrings do not say so again.
"""
