"""A script followed from its first line to its last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placer.formats.jobs.findings import Asked, Place, Remark
from placer.formats.jobs.shell.either import Either
from placer.formats.jobs.shell.manifest import manifest_of
from placer.formats.jobs.shell.slurm import image_of_batch
from placer.formats.jobs.shell.text import Text, text_of_file

if TYPE_CHECKING:
    from placer.formats.jobs.shell.ways import ExitError


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the script would run.

    Attributes
    ----------
    words : tuple of Text
        Its words, expanded.
    environment : mapping of str to Text
        Variables set for it alone.
    causes : tuple of str
        What decides whether it runs and is not known; empty where it runs.
    """

    words: tuple[Text, ...]
    environment: dict[str, Text]
    causes: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """Where it begins."""
        return self.words[0].place if self.words else Place("")


@dataclass
class Script:
    """What a script would do.

    Attributes
    ----------
    commands : list of Command
        In the order in which they would run.
    variables : dict of str to Text
        At its end; of an array, its elements with blanks between.
    exported : dict of str to None
        Names of the variables that it hands to its commands.
    files : dict of str to Text
        What it writes into files, by their names.
    either : Either
        The alternatives of what is not known.
    missing : list of Remark
        Files that it sources and that are not there.
    left_out : list of Remark
        What else could not be followed.
    image : str
        Of the container that it runs in; empty where it names none.
    is_manifest : bool
        Whether pods run it, whose manifest it is.
    ended : ExitError or None
        Where ``exit`` ends it, and the variables that it takes to be empty there.
    """

    source: str
    commands: list[Command] = field(default_factory=list)
    variables: dict[str, Text] = field(default_factory=dict)
    exported: dict[str, None] = field(default_factory=dict)
    files: dict[str, Text] = field(default_factory=dict)
    either: Either = field(default_factory=Either)
    missing: list[Remark] = field(default_factory=list)
    left_out: list[Remark] = field(default_factory=list)
    image: str = ""
    is_manifest: bool = False
    ended: ExitError | None = None


def read_script(text: str, source: str, asked: Asked) -> Script:
    """The script of a file, followed.

    Parameters
    ----------
    asked : Asked
        Its settings count more than what the script assigns; files that the script
        names are looked for by its ``include``.
    """
    from placer.formats.jobs.shell.follow import Shell

    script = Script(source, image=image_of_batch(text))
    manifest = manifest_of(text, source)
    if manifest is not None:
        text, script.image, script.is_manifest = manifest.script, manifest.image, True
    Shell(script, asked).run(text_of_file(text, source))
    return script
