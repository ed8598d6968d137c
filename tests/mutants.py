"""Texts after random edits, for tests of what reads them."""

import copy
import json
import re

TOKENS = (
    "n[1-9]", "n[1-99999]", "[", "]", "{", "}", '"', ",", ":", "=", "\\", "#", "\n",
    "\t", "\x00", "\x1b[4m", "\u202e", "\ud800", "null", "true", "-1", "1e400",
    "99999999999999999999999", "NaN", "&a", "*a", "!!x", "<<", "Nodes=ALL",
    "Include /dev/zero", "NV18\t", "GPU0\tGPU1\t", "<pci class='0x0302'>", "<gpu>",
    "<xgmi target='0000:10:00.0'/>", "XGMI", "===== Link Type between two GPUs =====\n",
    "<!DOCTYPE a>", "&lt;", "    Fabric\n", '[1]\t"S-0"[1]\n', ",0,inf,", "SwitchName=",
    "[[[[[[[[" * 40, "x" * 300,
)  # fmt: skip
NUMBERS = ("0", "1", "3", "7", "64", str(10**12))
VALUES = (
    None, True, 0, -1, 2**40, 1e400, "", "x", "x" * 300, "n[1-99999]", [], {}, [[]],
)  # fmt: skip


def mutated(text, chance, tokens=TOKENS):
    """The text after a few random edits."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.choice((1, 2, 5, 40)))
        kind = chance.randrange(7)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + chance.choice(tokens) + text[at:]
        elif kind == 2:
            text = text[:at] + chance.choice(tokens) + text[end:]
        elif kind == 3:
            text = text[:end] + text[at:]
        elif kind == 4:
            text = text[:at]
        elif kind == 5 and (numbers := list(re.finditer(r"\d+", text))):
            number = chance.choice(numbers)
            other = chance.choice(NUMBERS)
            text = text[: number.start()] + other + text[number.end() :]
        else:
            lines = text.split("\n")
            i, j = (chance.randrange(len(lines)) for _ in range(2))
            lines[i], lines[j] = lines[j], lines[i]
            text = "\n".join(lines)
    return text


def mutated_values(text, chance):
    """A JSON text with a few of its values replaced, dropped, doubled or swapped.

    Of lines of JSON it is the first.
    """
    first, _, rest = text.partition("\n")
    if rest.startswith("{"):
        return f"{mutated_values(first, chance)}\n{rest}"
    data = json.loads(text)
    for _ in range(chance.randint(1, 4)):
        holders = [data]
        for holder in holders:
            values = holder.values() if isinstance(holder, dict) else holder
            holders += [value for value in values if isinstance(value, dict | list)]
        holder = chance.choice(holders)
        if not holder:
            continue
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        a, b = chance.choice(keys), chance.choice(keys)
        kind = chance.randrange(4)
        if kind == 0:
            holder[a] = copy.deepcopy(chance.choice(VALUES))
        elif kind == 1:
            del holder[a]
        elif kind == 2:
            holder[a] = json.loads(json.dumps(holder[b]))
        elif isinstance(holder, dict):
            holder[chance.choice(TOKENS)] = holder.pop(a)
        else:
            holder.append(holder[a])
    return json.dumps(data, indent=1)
