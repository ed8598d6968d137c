// Two units of a set change places.
#pragma once
#include "../search.hpp"

namespace placer {

inline void swap_mates(Search& s, Pairs& pairs) {
  const int unit = s.waited_for(1 + s.random.below(6));
  const Family& family = s.any_family();
  const int set = family.of_unit[unit];
  const int mate = family.units.begin(set)[s.random.below(family.units.size(set))];
  const int one = s.slot_of(unit), other = s.slot_of(mate);
  if (s.cell(one) != s.cell(other)) pairs.push_back({one, other});
}

}  // namespace placer
