// A part dissolves: each unit joins mates elsewhere, by a chain of its own that ends in room.
#pragma once
#include "../search.hpp"

namespace placer {

inline void dissolve(Search& s, Pairs& pairs) {
  constexpr int MOST = 24, LONGEST = 4;
  const int unit = s.waited_for(1 + s.random.below(6)), home = s.cell_of(unit);
  const Family& family = s.any_family();
  const int first_set = family.of_unit[unit];
  Ints leaving;
  for (int u : family.units[first_set])
    if (s.cell_of(u) == home) leaving.push_back(s.slot_of(u));
  if ((int)leaving.size() == family.units[first_set].size() || leaving.size() > MOST) return;
  const int count = s.random.below(3) ? (int)leaving.size() : 1 + s.random.below((int)leaving.size());
  for (int i = 0; i < count; ++i) {
    int set = first_set;
    for (int link = 0; link < LONGEST; ++link) {
      int to = -1;
      for (int k = 0; k < 8; ++k) {
        const int cell = s.cell_of(family.units[set].any(s.random));
        if (cell == home) continue;
        if (to < 0 || s.room[cell] > 0) to = cell;
        if (s.room[cell] > 0) break;
      }
      if (to < 0) break;
      const Range range = s.range(0, to);
      const int length = range.end - range.first;
      int slot = -1;
      if (s.room[to] > 0) {
        const int shift = s.random.below(length);
        for (int k = 0; k < length && slot < 0; ++k) {
          const int at = range.first + (k + shift) % length;
          if (s.unit_at(at) < 0 && !Search::has(pairs, at)) slot = at;
        }
      }
      const bool is_room = slot >= 0;
      for (int k = 0; k < 6 && slot < 0; ++k) {
        const int at = s.any_in(range), other = s.unit_at(at);
        if (other < 0 || Search::has(pairs, at)) continue;
        if (family.of_unit[other] != set && family.of_unit[other] != first_set) slot = at;
      }
      if (slot < 0) break;
      pairs.push_back({leaving[i], slot});
      if (is_room) break;
      set = family.of_unit[s.unit_at(slot)];
    }
  }
}

}  // namespace placer
