"""Words are those that bash itself would pass on, for scripts made at random."""

import random
import subprocess

import pytest

from placer.formats.jobs.findings import Asked
from placer.formats.jobs.shell import read_script
from tests.marks import slow

START = "N=4\nA=a/b.c\nB=x\nC='q  r'\nLIST=(1 'two w' 3)\n"
WORDS = (
    "x", "--f", "\\$x", "a\\ b", "a#b", "''", '""', "'$A q'", "$'t\\tu'",
    "$A", '"$C"', "${C}", "a${C}b", '"p ${C} q"z', "${C:-d e}", '"${UNSET:-d e}"',
    "${A%.*}", "${A##*/}", "${#C}", "${B:+alt}", "${A:1:2}", "${A/a/Z}", "${B^^}",
    "${LIST[@]}", '"${LIST[@]}"', '"${LIST[*]}"', "${LIST[1]}", "${#LIST[@]}",
    "$(echo m n)", '"$(echo m n)"', "`echo k`", '"\\$A \\n \\\\"',
    "$((N*3+1))", "$((10/3*-2))", "$((N>3?1:2))", "$((N**2%7))", "$((1<<4|3))",
)  # fmt: skip
TESTS = (
    '[ "$B" = x ]', "[[ $A == a* ]]", '[ -n "$UNSET" ]', '[ -z "$C" ]', "(( N == 4 ))",
    "[[ $A != 7 && -n $A ]]", "[[ ! $B == x || 1 -eq 2 ]]", "[ $N -gt 3 ]", "! true",
    "[ $N -lt 3 -o $N -eq 4 ]", "[[ ( $N -ge 4 ) && ! -z $B ]]", "[[ -v UNSET ]]",
    "test $N -le 8 -a 1 -eq 1", "[[ -v A && $N -ne 4 ]]",
)  # fmt: skip
STEPS = (
    "N++", "--N", "N += 3", "N = N > 2 ? 1 : 7", "N %= 3, N *= 2", "N = M = 5",
    "N > 3 && N--", "N < 9 || (N = 2)", "N > 2 ? N-- : N++",
)  # fmt: skip


def block(chance, depth):
    return "\n".join(statement(chance, depth) for _ in range(chance.randrange(1, 3)))


def statement(chance, depth=0):
    def words(most):
        return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(most)))

    def inner():
        return block(chance, depth + 1) if depth < 3 else "go deep"

    name, test = chance.choice("ABC"), chance.choice(TESTS)
    passes = chance.randrange(4)
    jump = chance.choice(("break", "continue", "true"))
    forms = (
        lambda: f"go {words(4)}",
        lambda: f"{name}={chance.choice(WORDS)}",
        lambda: f"{name}+={chance.choice(WORDS)}",
        lambda: f"LIST=({words(4)})",
        lambda: f"LIST+=({words(3)} # more\n)",
        lambda: f"N=$(( N + {chance.randrange(4)} ))",
        lambda: f"{test} && go and || go or",
        lambda: f"for A in {words(4)}; do\n{inner()}\ndone",
        lambda: (
            f"for ((i{depth}=0; i{depth}<{passes}; i{depth}++)); do {inner()}; done"
        ),
        lambda: f"j{depth}=0; while ((j{depth}++ < {passes})); do {inner()}; done",
        lambda: f"for B in {{1..3}} {{b,c}}; do {test} && {jump}; {inner()}; done",
        lambda: f"printf -v {name} '%s,' {words(3)}; go ${name}",
        lambda: (
            f"read -r A B <<< '{chance.choice(('a', 'a b', 'a b c', ''))}'; go $A.$B"
        ),
        lambda: f"(({chance.choice(STEPS)})) && go $N; go $((N--)) $[2*N]",
        lambda: f"({name}=in; {inner()}); go ${name}",
        lambda: (
            f"f() {{ local {name}=in; {test} && return; {inner()}\n}}\nf; go ${name}"
        ),
        lambda: f"go \\\n {words(3)} \\\n {words(2)} # tail",
        lambda: f"if {test}; then\n{inner()}\nelse {inner()}\nfi",
        lambda: f"case ${name} in\n x|7) {inner()} ;;\n a*)\n{inner()};;\n*) go\nesac",
        lambda: f'f() {{ go $1 "$@" $#; {inner()}\n}}\nf {words(3)}',
    )
    return chance.choice(forms)()


@pytest.mark.parametrize("count", [40, *slow([2000])])
def test_words_are_those_of_bash(count):
    """Every command of a script is passed what bash passes it."""
    chance = random.Random(11)
    show = "set -f\ngo() { printf '<%s>' $# \"$@\"; printf '\\036'; }\n"
    compared = 0
    for _ in range(count):
        script = START + "\n".join(statement(chance) for _ in range(6))
        # Few scripts double a list at each turn of two loops: 1 s of CPU ends them.
        own = ["bash", "-c", f"ulimit -t 1\n{show}{script}"]
        bash = subprocess.run(own, capture_output=True, text=True, timeout=60)
        if (
            bash.stderr or bash.returncode < 0
        ):  # it means nothing to bash, or has no end
            continue
        commands = read_script(show + script, "x.sh", Asked()).commands
        found = [
            "".join(f"<{word.text}>" for word in command.words[2:])
            for command in commands
            if command.words[1].text == "<%s>"
        ]
        assert found == bash.stdout.split("\036")[:-1], script
        compared += 1
    assert compared > count / 2
