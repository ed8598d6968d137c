// What one domain holds of a set joins another part of it, or goes to any domain.
//
// What comes back matters: free slots first, then units of sets that lie at both ends, and
// of each set as much as lies there: else a set is gathered by scattering others.
#pragma once
#include "../search.hpp"

namespace placer {

inline void gather(Search& s, Pairs& pairs, bool joins) {
  const int unit = s.waited_for(1 + s.random.below(6));
  const Family& family = s.any_family();
  const int set = family.of_unit[unit];
  const Rows::Row members = family.units[set];
  const int level = s.random.below(4) ? 0 : s.random.below(s.levels);
  const int target = joins ? s.slot_of(members.any(s.random)) : s.random.below(s.slots);
  const int from = s.domain(level, s.slot_of(unit)), to = s.domain(level, target);
  const Range range = s.range(level, to);
  if (from == to) return;
  Ints leaving;
  for (int member : members)
    if (s.domain(level, s.slot_of(member)) == from) leaving.push_back(s.slot_of(member));
  int count = (int)leaving.size(), some = s.random.below(6), rule = s.random.below(4);
  if (some == 0) count = 1 + s.random.below(count);
  else if (some == 1) count = std::min(count, 1 + s.random.below(4));
  for (int tries = 0; (int)pairs.size() < count && tries < 16; ++tries) {
    int best = -1, rank = -1;
    for (int i = 0; i < 6; ++i) {
      const int slot = s.any_in(range), other = s.unit_at(slot);
      if (Search::has(pairs, slot) || (other >= 0 && family.of_unit[other] == set)) continue;
      int found = other < 0 ? (rule ? 3 : 1) : 0;
      if (other >= 0 && rule < 3) {
        const int its = family.of_unit[other];
        for (int k = 0; k < 3 && !found; ++k) {
          if (s.domain(level, s.slot_of(family.units[its].any(s.random))) == from) found = 2;
        }
      }
      if (found > rank) rank = found, best = slot;
    }
    if (best < 0) continue;
    const int other = s.unit_at(best);
    if (other < 0) {
      pairs.push_back({leaving[pairs.size()], best});
      continue;
    }
    const int its = family.of_unit[other];
    for (int u : family.units[its]) {
      const int slot = s.slot_of(u);
      if ((int)pairs.size() == count) break;
      if (slot >= range.first && slot < range.end && !Search::has(pairs, slot))
        pairs.push_back({leaving[pairs.size()], slot});
    }
  }
}

inline void join_part(Search& s, Pairs& pairs) { gather(s, pairs, true); }
inline void move_part(Search& s, Pairs& pairs) { gather(s, pairs, false); }

}  // namespace placer
