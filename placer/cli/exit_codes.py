"""How the command ends: exit codes, and what each says."""

from __future__ import annotations

from placer.base.errors import CheckError, InfeasibleError, OutputError, PlacerError
from placer.starting import INTERRUPTED

DONE, NO, INVALID, INFEASIBLE, OUTPUT_FAILED = range(5)
INTERNAL = 70
BROKEN_PIPE = 141  # what a shell says of a program that SIGPIPE ended
SAYS = {
    f"{DONE}": "Done. diff found no difference; all that check looked at holds.",
    f"{NO}": "The answer is no: diff found differences, check a fault, --gap is not "
    "met.",
    f"{INVALID}": "An option or an input is wrong.",
    f"{INFEASIBLE}": "No placement keeps the hard rules.",
    f"{OUTPUT_FAILED}": "The output could not be written.",
    f"{INTERNAL}": "An error of placer itself.",
    f"{INTERRUPTED}, 143": "Ended by Ctrl-C or SIGTERM; the best plan so far is "
    "written.",
}


def of(error: PlacerError) -> int:
    """The code of an error."""
    match error:
        case CheckError():
            return NO
        case InfeasibleError():
            return INFEASIBLE
        case OutputError():
            return OUTPUT_FAILED
        case _:
            return INVALID
