// When the stages of the slowest replica work, before over after, on one clock.

const ROW_AREA = 96;  // pixels of all stages of a side, unless these are many
const ROW_BREAK = 20; // between the first stages and the last of more than are drawn

function drawPipelines() {
  const shown = sides.filter((side) => side.pipeline);
  if (!shown.length) return;
  $("pipelines").hidden = false;
  const canvas = $("pipe"), width = canvas.clientWidth, dpr = window.devicePixelRatio || 1;
  const stages = Math.max(...shown.map((side) => side.pipeline.rows.length));
  const row = Math.max(11, Math.min(14, Math.floor(ROW_AREA / stages)));
  const isCut = ({ pipeline }) => pipeline.rows.length < pipeline.stages;
  const high = row * stages + (shown.some(isCut) ? ROW_BREAK : 0), between = 40, top = 26;
  const height = top + shown.length * (high + between) - 20;
  canvas.width = width * dpr;
  canvas.height = height * dpr;
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  const ends = shown.map(lengthOf), longest = Math.max(...ends.map((end) => end.total));
  const left = width < 600 ? 0 : 70, x = (time) => left + (time / longest) * (width - left - 2);
  shown.forEach((side, i) => {
    const y = top + i * (high + between), { pipeline, total } = ends[i];
    const { rows } = side.pipeline, half = isCut(side) ? rows.length / 2 : rows.length;
    const rowTop = (index) => y + index * row + (index < half ? 0 : ROW_BREAK);
    const bands = half < rows.length ? [[0, half], [half, rows.length]] : [[0, rows.length]];
    const band = (from, width) => {
      for (const [first, end] of bands) context.fillRect(from, rowTop(first), width, row * (end - first) - 1);
    };
    context.font = "600 12px " + FONT;
    context.fillStyle = css("--ink");
    context.textAlign = "left";
    context.fillText(side.name.slice(0, 40), 0, y - 6);
    context.font = "10.5px " + FONT;
    context.fillStyle = css("--soft");
    if (left) rows.forEach((stage, index) => context.fillText("stage " + number(stage), 0, rowTop(index) + row - 2));
    if (bands.length > 1) context.fillText(plural(side.pipeline.stages - rows.length, "more stage"), left, rowTop(half) - 6);
    context.font = "11px " + FONT;
    context.fillStyle = css("--wait");
    band(x(0), x(pipeline) - x(0));
    const pieces = side.pipeline.decoded, colours = [css("--backward"), css("--forward")];
    for (let p = 0; p < pieces.length; p += 5) {
      const from = x(pieces[p + 2] / 1e6), to = x(pieces[p + 3] / 1e6);
      context.fillStyle = colours[pieces[p + 1]];
      context.fillRect(from, rowTop(pieces[p]), to - from - (to - from > 3 ? 0.5 : 0), Math.max(row - 1, 1));
    }
    let start = pipeline;
    for (const [name, time] of side.pipeline.after) {
      context.fillStyle = css(name === "fixed" ? "--fixed" : "--net");
      band(x(start), Math.max(1, x(start + time) - x(start)));
      start += time;
    }
    context.fillStyle = css("--ink");
    context.textAlign = "right";
    context.fillText(seconds(total), x(total), y + high + 14);
    context.fillStyle = css("--soft");
    if (x(total) - x(pipeline) > 70) context.fillText("pipeline " + seconds(pipeline), x(pipeline), y + high + 14);
  });
  context.textAlign = "left";
  headPipelines(shown, ends);
}

function lengthOf(side) {
  side.pipeline.decoded ??= decoded(side.pipeline.pieces);
  const pieces = side.pipeline.decoded;
  let end = 0;
  for (let p = 0; p < pieces.length; p += 5) if (pieces[p] === 0) end = Math.max(end, pieces[p + 3]);
  const pipeline = end / 1e6;
  return { pipeline, total: pipeline + side.pipeline.after.reduce((sum, [, time]) => sum + time, 0) };
}

function headPipelines(shown, ends) {
  const change = ends[0].pipeline - ends.at(-1).pipeline;
  const noise = 2e-6 * shown.length;
  $("pipe-head").textContent = shown.length === 1 || Math.abs(change) < noise
    ? "The slowest replica's pipeline takes " + seconds(ends.at(-1).pipeline)
    : "The slowest replica's pipeline ends " + seconds(Math.abs(change)) + (change > 0 ? " sooner" : " later");
  const { drawn, of } = shown.at(-1).pipeline;
  const few = drawn < of ? " The first " + number(drawn) + " of " + number(of) + " micro-batches." : "";
  $("pipe-sub").textContent = "Replica " + [...new Set(shown.map((side) => side.pipeline.replica))].join(" before, ")
    + (shown.length > 1 && shown[0].pipeline.replica !== shown[1].pipeline.replica ? " after" : "") + ". A row is a stage." + few;
}
