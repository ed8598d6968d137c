// One line about a rank, the same for mouse, finger and keys.

const HINT = "Point at a GPU, or focus a map and use the arrow keys: its groups light up on both sides. Scroll to zoom once a map has focus, drag to move.";

function seatName(side, rank) {
  const gpu = side.seats[rank], node = nodeOfGpu[gpu];
  return machine.names[0][node] + ":" + (gpu - firstGpu[node]);
}

function part(tag, text) {
  const found = document.createElement(tag);
  found.textContent = text;
  return found;
}

function groupText(axis, ranks) {
  const spans = sides.map((side, s) => (ranks[s] < 0 || !side.axes.has(axis) ? null : {
    in: domainsOf(side, group(side, axis, ranks[s]), data.level).size,
    time: groupSeconds(side, axis, ranks[s]),
  })).filter(Boolean);
  const counts = [...new Set(spans.map((span) => span.in))];
  const times = [...new Set(spans.map((span) => span.time).filter((time) => time !== null).map(seconds))];
  return axis + " in " + counts.join(" \u2192 ") + " " + plural(counts.at(-1), machine.levels[data.level]).replace(/^[\d,]+ /, "")
    + (times.length ? ", " + times.join(" \u2192 ") : "");
}

function neighbourText(axis, s, rank) {
  const side = sides[s], { size, stride } = side.axes.get(axis);
  const at = coordinate(side, axis, rank), first = rank - at * stride;
  return [(at + size - 1) % size, (at + 1) % size].map((i) => first + i * stride);
}

function tell(rank) {
  const box = $("told");
  if (rank < 0) {
    box.textContent = HINT;
    return;
  }
  const side = sides[after], ranks = sides.map((_, s) => partner(rank, after, s));
  const where = [...new Set(ranks.map((r, s) => (r < 0 ? "nowhere" : seatName(sides[s], r))))].join(" \u2192 ");
  const axes = [...side.axes.keys()];
  const role = roleOf(side, rank);
  const own = axes.map((axis) => axis + " " + coordinate(side, axis, rank));
  const coordinates = (role ? [role.name + " " + role.instance] : own).join(" \u00b7 ");
  box.replaceChildren(part("b", "rank " + number(rank)), " ", part("span", coordinates), " ", part("span", where), document.createElement("br"));
  for (const axis of axes) {
    const [before, next] = neighbourText(axis, after, rank);
    const between = axis === "ep" || axis === "etp" ? "" : ", beside " + (before === next ? number(next) : number(before) + " and " + number(next));
    box.append(part("span", groupText(axis, ranks) + between), " ");
  }
  if (side.busy?.length) {
    const busy = ranks.map((r, s) => (r < 0 ? null : sides[s].busy?.[domainOfRank(sides[s], r, uplinkLevel)])).filter((b) => b != null);
    box.append(part("span", "uplink of the " + data.uplinks + " in use " + [...new Set(busy.map(seconds))].join(" \u2192 ")));
  }
}
