// Two domains of a tier exchange their nodes, those with most room first.
#pragma once
#include "run_parts.hpp"

namespace placer {

inline void swap_racks(Search& s, Pairs&) {
  Runs& r = s.runs;
  const int level = s.random.below(s.levels);
  const int here = s.domain(level, s.slot_of(s.waited_for(1 + s.random.below(6))));
  const int there = s.domain(level, s.random.below(s.slots));
  if (here == there) return;
  const auto nodes_in = [&](int domain) {
    Ints found;
    const Range range = s.range(level, domain);
    for (int slot = range.first; slot < range.end; ++slot) found.push_back(r.node_of_slot[slot]);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::stable_sort(found.begin(), found.end(), [&](int a, int b) { return r.room[a] > r.room[b]; });
    return found;
  };
  const Ints ones = nodes_in(here), others = nodes_in(there);
  for (size_t i = 0; i < std::min(ones.size(), others.size()); ++i)
    for (const auto& [node, other] : {std::pair{ones[i], others[i]}, std::pair{others[i], ones[i]}})
      if (const int at = r.place[node]; at >= 0) r.replace(at, at + 1, {{other, r.order[at].length}});
}

}  // namespace placer
