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
  const int set = family.of_unit[unit], level = s.random.below(4) ? 0 : s.random.below(s.levels);
  const int target = joins ? s.slot_of(family.units[set].any(s.random)) : s.random.below(s.slots);
  const int from = s.domain(level, s.slot_of(unit)), to = s.domain(level, target);
  const Range range = s.range(level, to);
  if (from == to) return;
  const Ints leaving = s.in_domain(family, set, level, from, pairs);
  int count = (int)leaving.size(), some = s.random.below(6), rule = s.random.below(4);
  if (some == 0) count = 1 + s.random.below(count);
  else if (some == 1) count = std::min(count, 1 + s.random.below(4));
  for (int tries = 0; (int)pairs.size() < count && tries < 16; ++tries) {
    int best = -1, rank = -1;
    for (int i = 0; i < 6; ++i) {
      const int slot = s.any_in(range), other = s.unit_at(slot);
      if (Search::has(pairs, slot) || (other >= 0 && family.of_unit[other] == set)) continue;
      int found = other < 0 ? (rule ? 3 : 1) : 0;
      if (other >= 0 && rule < 3 && s.seems_in(family, family.of_unit[other], level, from)) found = 2;
      if (found > rank) rank = found, best = slot;
    }
    if (best < 0) continue;
    const int other = s.unit_at(best);
    const Ints back = other < 0 ? Ints{best} : s.in_domain(family, family.of_unit[other], level, to, pairs);
    for (size_t i = 0; i < back.size() && (int)pairs.size() < count; ++i) pairs.push_back({leaving[pairs.size()], back[i]});
  }
}

inline void join_part(Search& s, Pairs& pairs) { gather(s, pairs, true); }
inline void move_part(Search& s, Pairs& pairs) { gather(s, pairs, false); }

}  // namespace placer
