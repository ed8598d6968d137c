// A unit, or all of its set that left with it, goes back to the cell where it was; who is
// there, and was not before, takes its place.
#pragma once
#include "../search.hpp"

namespace placer {

inline void go_home(Search& s, Pairs& pairs) {
  int unit = -1;
  for (int i = 0; i < 64 && unit < 0; ++i)
    if (const int one = s.random.below(s.units); s.is_away(one)) unit = one;
  if (unit < 0) return;
  const int to = s.home.cell[unit], from = s.cell_of(unit);
  const Family& family = s.any_family();
  const int set = family.of_unit[unit];
  Ints leaving{s.slot_of(unit)};
  if (s.random.below(2))
    for (int u : family.units[set])
      if (u != unit && s.home.cell[u] == to && s.cell_of(u) == from) leaving.push_back(s.slot_of(u));
  const Range range = s.range(0, to);
  const int length = range.end - range.first, shift = s.random.below(length);
  for (int k = 0; k < length && pairs.size() < leaving.size(); ++k) {
    const int slot = range.first + (k + shift) % length, other = s.unit_at(slot);
    if (other < 0 || s.home.cell[other] != to) pairs.push_back({leaving[pairs.size()], slot});
  }
}

}  // namespace placer
