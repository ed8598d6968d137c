// A node that holds nothing takes ranks of one along the order.
#pragma once
#include "run_parts.hpp"

namespace placer {

inline void open_node(Search& s, Pairs&) {
  Runs& r = s.runs;
  if (r.idle.empty()) return;
  const int at = slow_place(s), node = r.idle[s.random.below((int)r.idle.size())];
  const Run run = r.order[at];
  const int count = 1 + s.random.below(std::min(run.length, r.room[node]));
  const Run rest{run.node, run.length - count}, fresh{node, count};
  if (s.random.below(2)) r.replace(at, at + 1, {fresh, rest});
  else r.replace(at, at + 1, {rest, fresh});
}

}  // namespace placer
