// Two sets as large as each other change places.
#pragma once
#include "../search.hpp"

namespace placer {

inline void exchange_sets(Search& s, const Family& family, int one, int other, Pairs& pairs) {
  const Rows::Row here = family.units[one], there = family.units[other];
  if (one == other || there.size() != here.size() || here.size() > Search::MOST) return;
  for (int i = 0; i < here.size(); ++i) pairs.push_back({s.slot_of(here[i]), s.slot_of(there[i])});
}

inline void swap_sets(Search& s, Pairs& pairs) {
  const int unit = s.waited_for(1 + s.random.below(6));
  const Family& family = s.any_family();
  const int other = s.random.below(2) ? s.waited_for(1) : s.random.below(s.units);
  exchange_sets(s, family, family.of_unit[unit], family.of_unit[other], pairs);
}

}  // namespace placer
