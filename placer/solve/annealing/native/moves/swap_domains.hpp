// Two domains of a tier exchange what their first slots hold.
#pragma once
#include "swap_sets.hpp"

namespace placer {

inline void exchange_domains(Search& s, int level, int one, int other, Pairs& pairs) {
  if (one == other) return;
  const Range here = s.range(level, one), there = s.range(level, other);
  const int count = std::min(here.end - here.first, there.end - there.first);
  if (count > Search::MOST) return;
  for (int i = 0; i < count; ++i) pairs.push_back({here.first + i, there.first + i});
}

inline void swap_domains(Search& s, Pairs& pairs) {
  const int level = s.random.below(s.levels);
  const int one = s.domain(level, s.slot_of(s.waited_for(1 + s.random.below(6))));
  const int other = s.domain(level, s.random.below(s.slots));
  exchange_domains(s, level, one, other, pairs);
}

}  // namespace placer
