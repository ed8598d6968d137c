// Two nodes change places: each takes the ranks of the other, or where it has no room for
// them comes with its own, and the cuts between them shift.
#pragma once
#include "run_parts.hpp"

namespace placer {

inline void swap_nodes(Search& s, Pairs&) {
  Runs& r = s.runs;
  const int one = slow_place(s), node = other_node(s, one), other = r.place[node];
  const Run run = r.order[one];
  if (node == run.node) return;
  if (other < 0) {
    if (r.room[node] >= run.length) r.replace(one, one + 1, {{node, run.length}});
    return;
  }
  const Run its = r.order[other];
  if (r.room[run.node] >= its.length && r.room[node] >= run.length) {
    r.replace(one, one + 1, {{node, run.length}});
    r.replace(other, other + 1, {{run.node, its.length}});
    return;
  }
  const int first = std::min(one, other), end = std::max(one, other) + 1;
  if (end - first > Search::FAR) return;
  std::vector<Run> runs = r.between(first, end);
  std::swap(runs.front(), runs.back());
  r.replace(first, end, std::move(runs));
}

}  // namespace placer
