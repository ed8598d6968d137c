// The nodes of a set in one domain change places with nodes of a domain that holds mates:
// first with idle ones, then with those of sets that lie at both ends.
#pragma once
#include "run_parts.hpp"

namespace placer {

inline void join_nodes(Search& s, Pairs&) {
  Runs& r = s.runs;
  const int unit = s.waited_for(1 + s.random.below(6)), level = s.random.below(4) ? 0 : s.random.below(s.levels);
  const Family& family = s.any_family();
  const int set = family.of_unit[unit];
  const Rows::Row members = family.units[set];
  const int mate = s.random.below(4) ? s.slot_of(members.any(s.random)) : s.random.below(s.slots);
  const int from = s.domain(level, s.slot_of(unit)), to = s.domain(level, mate);
  if (from == to) return;
  const Range range = s.range(level, to);
  Ints leaving, taken;
  for (int member : members) {
    const int at = r.place_of(member);
    if (s.domain(level, s.slot_of(member)) == from && (leaving.empty() || leaving.back() != at)) leaving.push_back(at);
  }
  if (!s.random.below(3)) leaving.resize(1 + s.random.below((int)leaving.size()));
  for (int at : leaving) {
    const Run run = r.order[at];
    int best = -1, rank = -1;
    for (int i = 0; i < 8; ++i) {
      const int node = r.node_of_slot[s.any_in(range)], other = r.place[node];
      if (std::find(taken.begin(), taken.end(), node) != taken.end() || r.room[node] < run.length) continue;
      int found = 3;
      if (other >= 0) {
        const int its = family.of_unit[r.begin[other]];
        if (its == set || r.room[run.node] < r.order[other].length) continue;
        found = s.domain(level, s.slot_of(family.units[its].any(s.random))) == from ? 2 : 0;
      }
      if (found > rank) rank = found, best = node;
    }
    if (best < 0) return;
    taken.push_back(best);
    const int other = r.place[best];
    r.replace(at, at + 1, {{best, run.length}});
    if (other >= 0) r.replace(other, other + 1, {{run.node, r.order[other].length}});
  }
}

}  // namespace placer
