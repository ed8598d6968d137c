// Two sets as large as each other change places.
#pragma once
#include "../search.hpp"

namespace placer {

constexpr int MOST_UNITS = 600;

inline void swap_sets(Search& s, Pairs& pairs) {
  const int unit = s.waited_for(1 + s.random.below(6));
  const Family& family = s.any_family();
  const int other = s.random.below(2) ? s.waited_for(1) : s.random.below(s.units);
  const int set = family.of_unit[unit], its = family.of_unit[other], size = family.units.size(set);
  if (set == its || family.units.size(its) != size || size > MOST_UNITS) return;
  for (int i = 0; i < size; ++i)
    pairs.push_back({s.slot_of(family.units.begin(set)[i]), s.slot_of(family.units.begin(its)[i])});
}

}  // namespace placer
