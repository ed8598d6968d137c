"""Bash scripts followed without running anything.

`read_script` gives the commands of a script as words, each with the place where it
stands, and the variables at its end. Nothing is executed and no environment is looked
at. What cannot be followed stays *open*: a variable that nobody sets, the output of a
command.
"""

from placer.formats.jobs.shell.script import Command, Script, read_script
from placer.formats.jobs.shell.text import Text, open_names

__all__ = ["Command", "Script", "Text", "open_names", "read_script"]
