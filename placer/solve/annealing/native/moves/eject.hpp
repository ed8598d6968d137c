// A part joins another part of its set; whom it puts out joins its own set, and so on, until
// there is room or what comes back has mates where the first came from.
#pragma once
#include "../search.hpp"

namespace placer {

inline void eject(Search& s, Pairs& pairs) {
  const int unit = s.waited_for(1 + s.random.below(6)), home = s.cell_of(unit);
  const Family& family = s.any_family();
  const int first_set = family.of_unit[unit], whole = s.random.below(3);
  Ints leaving = s.in_domain(family, first_set, 0, home, pairs);
  if (whole == 0) leaving.resize(1);
  if (whole == 2) leaving.resize(1 + s.random.below((int)leaving.size()));
  int set = first_set;
  for (int link = 0; link < Search::LONGEST; ++link) {
    int to = -1;
    for (int i = 0; i < 6; ++i) {
      const int cell = s.cell_of(family.units[set].any(s.random));
      if (cell == home) continue;
      if (to < 0 || (s.random.below(2) && s.room[cell] >= (int)leaving.size())) to = cell;
    }
    if (to < 0) return;
    const Range range = s.range(0, to);
    int best = -1, rank = -1;
    for (int i = 0; i < 8; ++i) {
      const int slot = s.any_in(range), other = s.unit_at(slot);
      int found = 3;
      if (other >= 0) {
        const int its = family.of_unit[other];
        if (its == set || its == first_set) continue;
        found = s.seems_in(family, its, 0, home) ? 2 : 0;
      }
      if (found > rank) rank = found, best = slot;
    }
    if (best < 0) return;
    const int other = s.unit_at(best);
    Ints out;
    if (other >= 0) out = s.in_domain(family, family.of_unit[other], 0, to, pairs);
    else
      for (int slot = range.first; slot < range.end; ++slot)
        if (s.unit_at(slot) < 0 && !Search::has(pairs, slot)) out.push_back(slot);
    if (out.empty() || (out.size() < leaving.size() && link)) return;
    leaving.resize(std::min(leaving.size(), out.size()));
    for (size_t i = 0; i < leaving.size(); ++i) pairs.push_back({leaving[i], out[i]});
    if (other < 0 || rank == 2) return;
    set = family.of_unit[other];
  }
}

}  // namespace placer
