// A unit by which rules are broken goes where it may be, alone, with its set or with its
// domain; who is there takes its place.
#pragma once
#include "swap_domains.hpp"

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
    const int set = family.of_unit[unit], theirs = other < 0 ? set : family.of_unit[other];
    return exchange_sets(s, family, set, theirs, pairs);
  }
  const int level = s.random.below(s.levels);
  exchange_domains(s, level, s.domain(level, from), s.domain(level, to), pairs);
}

}  // namespace placer
