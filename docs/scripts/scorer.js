// Order of what a search finds: words in titles first, then in the text; pages that people
// work with before evidence and internals.
const INSIDE = /^(method|architecture|cost-model|benchmarks|faults|also|validation|evidence.*)$/;
var Scorer = {
  score: ([page, , , , score]) => (INSIDE.test(page) ? score / 2 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
