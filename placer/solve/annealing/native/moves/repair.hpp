// A unit by which rules are broken goes where it may be, alone, with its set or with its
// domain; who is there takes its place.
#pragma once
#include "swap_sets.hpp"

namespace placer {

inline void repair(Search& s, Pairs& pairs) {
  const int unit = s.fence.any_broken(s.random);
  if (unit < 0) return;
  const int from = s.slot_of(unit), home = s.fence.home_of(unit, s.random);
  const int to = home < 0 ? s.random.below(s.slots) : home, other = s.unit_at(to);
  const int way = s.random.below(3);
  if (from == to) return;
  if (way == 0) return pairs.push_back({from, to});
  if (way == 1) {
    const Family& family = s.any_family();
    const int set = family.of_unit[unit], size = family.units.size(set);
    const int theirs = other < 0 ? set : family.of_unit[other];
    if (theirs == set || family.units.size(theirs) != size || size > MOST_UNITS) return;
    for (int i = 0; i < size; ++i)
      pairs.push_back({s.slot_of(family.units.begin(set)[i]), s.slot_of(family.units.begin(theirs)[i])});
    return;
  }
  const int level = s.random.below(s.levels);
  const Range here = s.range(level, s.domain(level, from)), there = s.range(level, s.domain(level, to));
  const int count = std::min(here.end - here.first, there.end - there.first);
  if (here.first == there.first || count > MOST_UNITS) return;
  for (int i = 0; i < count; ++i) pairs.push_back({here.first + i, there.first + i});
}

}  // namespace placer
