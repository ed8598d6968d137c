// Two sets as large as each other change places.
#pragma once
#include "../search.hpp"

namespace placer {

constexpr int MOST_UNITS = 600;

inline void exchange_sets(Search& s, const Family& family, int one, int other, Pairs& pairs) {
  const int size = family.units.size(one);
  if (one == other || family.units.size(other) != size || size > MOST_UNITS) return;
  for (int i = 0; i < size; ++i)
    pairs.push_back({s.slot_of(family.units.begin(one)[i]), s.slot_of(family.units.begin(other)[i])});
}

inline void swap_sets(Search& s, Pairs& pairs) {
  const int unit = s.waited_for(1 + s.random.below(6));
  const Family& family = s.any_family();
  const int other = s.random.below(2) ? s.waited_for(1) : s.random.below(s.units);
  exchange_sets(s, family, family.of_unit[unit], family.of_unit[other], pairs);
}

}  // namespace placer
