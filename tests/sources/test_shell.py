"""Scripts are followed as bash would, and nothing of them is run."""

import pytest

from placer.base.errors import InputError
from placer.formats.jobs.findings import Asked
from placer.formats.jobs.shell import open_names, read_script
from placer.formats.jobs.shell.text import opens
from tests.problems import problems_of
from tests.texts import table

COLUMNS, OPEN = table("sources/shell.yaml", "scripts_that_cannot_be_followed")
LONG = [
    ("A=x\n" + 'A="$A$A"\n' * 60, 0, "more text than can be followed"),
    ("$(" * 1000, 1, "nested more than"),
    ("if true; then " * 1000, 1, "nested too deeply"),
]


def followed(text, files=(), **settings):
    """The script, with files beside it and settings."""
    beside = dict(files)

    def include(_source, name):
        key = name.rpartition("/")[2]
        return (beside[key], key) if key in beside else None

    return read_script(text, "run.sh", Asked(settings=settings, include=include))


def words(text, **settings):
    """Words of the last command."""
    return [word.text for word in followed(text, **settings).commands[-1].words]


@pytest.mark.parametrize(*table("sources/shell.yaml", "words"))
def test_words(text, expected):
    """What a command is passed, word by word; a place of many digits is no argument."""
    assert words(text) == expected
    assert words("go ${" + "9" * 5000 + ":-x}") == ["go", "x"]


@pytest.mark.parametrize(
    "condition", [r"[ \( a ]", "[ 1 -eq 1 2 ]", "[ ! -f pretrain.py ]"]
)
def test_conditions_that_do_not_hold(condition):
    """What bash calls wrong, and what asks for a file that the job needs."""
    assert words(f"if {condition}; then go yes; else go no; fi") == ["go", "no"]


def test_settings_count_more_than_the_script():
    """--set wins over what the script assigns, wherever it does."""
    text = "N=1\nN=2\nA=(x)\ngo $N ${M:-5} ${A[@]}"
    assert words(text, N="7", M="8", A="y") == ["go", "7", "8", "y"]


def test_what_nobody_sets_keeps_its_name():
    """An open value says which variable to set, through assignments too."""
    inner = followed('X=$((U + 1))\nbash -c "go $X"').commands[-1].words[1]
    assert open_names(inner.text) == ["X"]
    script = followed("T=$1\nD=<path to data>\nH=$(hostname)\ngo $T $D $H ${DP}0")
    found = [open_names(word.text) for word in script.commands[-1].words]
    assert found == [[], ["T"], ["D"], ["H"], ["DP"]]


@pytest.mark.parametrize(
    *table("sources/shell.yaml", "what_is_not_known_stays_unknown")
)
def test_what_is_not_known_stays_unknown(text, expected, causes):
    """A value is known, or open with what decides it; never that of one branch."""
    (word,) = followed(f"{text}\ngo $X").commands[-1].words[1:] or [None]
    if expected is not None:
        assert word is not None
        assert word.text == expected
    elif word is not None and causes is not None:
        assert [list(part.causes) for part in opens(word.text)] == [causes]


def test_a_script_that_ends_says_why():
    """The variables that it takes to be empty where it ends."""
    ended = followed('if [ -z "$KEY" ]; then echo no; exit 1; fi\ngo').ended
    assert (ended.place.line, ended.names) == (1, ("KEY",))
    assert followed('[ -n "$KEY" ] || exit 1\ngo').ended.names == ("KEY",)
    assert followed("if [ $# -lt 1 ]; then exit; fi").ended.names == ("1",)
    assert followed("[ $M = a ] || exit 1\ngo").ended is None


def test_expressions_that_take_for_ever_are_not_tried():
    """One of many repetitions is not known to fit."""
    text = f"X={'a' * 60}\n[[ $X =~ ^{'a*' * 30}b$ ]] && X=1\n[[ $X =~ ^a+$ ]] && Y=2"
    variables = followed(text).variables
    assert opens(variables["X"].text)
    assert variables["Y"]


def test_included_files_share_variables_and_missing_ones_are_noted():
    """source looks beside the script."""
    text = 'TP=2\n. `pwd`/CONFIG.sh\nsource "$DIR/gone.sh"\ngo $PARAMS'
    script = followed(text, {"CONFIG.sh": 'PARAMS="--tp ${TP}"'})
    assert [w.text for w in script.commands[-1].words] == ["go", "--tp", "2"]
    assert [remark.key for remark in script.missing] == ["/gone.sh"]
    guarded = followed("[ -f x.sh ] && source x.sh\ngo a")
    assert not guarded.missing
    assert [remark.key for remark in guarded.left_out] == ["source x.sh"]


def test_files_that_the_script_writes_are_kept():
    """Here documents, expanded unless their end mark is quoted."""
    text = "N=4\ncat <<EOT > $F.json\n{n: $N}\nEOT\ncat > b <<'E'\n$N\nE\n"
    script = followed(text, F="a")
    assert {name: file.text for name, file in script.files.items()} == {
        "a.json": "{n: 4}\n",
        "b": "$N\n",
    }


@pytest.mark.parametrize(COLUMNS, [*OPEN, *LONG])
def test_scripts_that_cannot_be_followed(text, line, words):
    """What is not closed is told with its place; nothing grows without end."""
    (problem,) = problems_of(followed, text)
    assert words in problem.message
    assert problem.line == line


def test_a_function_or_file_that_calls_itself_ends():
    """Recursion is followed a little way; in branches it is refused."""
    assert followed("f() { f; }\nf\ngo a").commands
    assert followed(". x.sh\ngo a", {"x.sh": ". x.sh"}).commands
    with pytest.raises(InputError, match="too many branches"):
        followed("f() { [ $M = a ] && f || f; }\nf")


def test_many_appends_are_not_copied():
    """An array that grows line by line is one array."""
    script = followed("A=()\n" + "A+=(--x 1) # more\n" * 2_000 + "go ${A[@]}")
    assert len(script.commands[-1].words) == 4_001
