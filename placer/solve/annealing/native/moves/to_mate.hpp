// A unit goes to a domain that holds another unit of its set.
#pragma once
#include "../search.hpp"

namespace placer {

inline void move_to_mate(Search& s, Pairs& pairs) {
  const int unit = s.waited_for(1 + s.random.below(6)), from = s.slot_of(unit);
  const Family& family = s.any_family();
  const int set = family.of_unit[unit];
  const int mate = family.units[set].any(s.random);
  const int level = s.random.below(s.levels);
  const int to = s.any_in(s.range(level, s.domain(level, s.slot_of(mate))));
  if (s.cell(from) != s.cell(to)) pairs.push_back({from, to});
}

}  // namespace placer
