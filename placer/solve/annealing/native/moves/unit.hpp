// A unit goes to any slot, and what is there comes back.
#pragma once
#include "../search.hpp"

namespace placer {

inline void move_unit(Search& s, Pairs& pairs) {
  const int from = s.slot_of(s.waited_for(1 + s.random.below(6))), to = s.random.below(s.slots);
  if (s.cell(from) != s.cell(to)) pairs.push_back({from, to});
}

}  // namespace placer
