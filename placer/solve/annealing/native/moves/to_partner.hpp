// A unit goes to a domain that holds somebody whom it sends to, into room or for whoever has
// fewest partners there.
#pragma once
#include "../search.hpp"

namespace placer {

// A slot of a range: free room, or of the loosest of some units, as drawn.
inline int loose_slot(Search& s, Range range, bool into_room, int tries) {
  int best = -1, least = 0;
  for (int i = 0; i < tries; ++i) {
    const int slot = s.any_in(range), other = s.unit_at(slot);
    if (other < 0) {
      if (into_room) return slot;
      continue;
    }
    const int ties = s.ties(other);
    if (best < 0 || ties < least) best = slot, least = ties;
  }
  return best;
}

inline void to_partner(Search& s, Pairs& pairs) {
  const int unit = s.waited_for(2), partner = s.partner_of(unit), from = s.slot_of(unit);
  if (partner < 0) return;
  const int level = s.random.below(4) ? 0 : s.random.below(s.levels);
  const int home = s.domain(level, s.slot_of(partner));
  if (s.domain(level, from) == home) return;
  const int to = loose_slot(s, s.range(level, home), s.random.below(2), 1 + s.random.below(4));
  if (to >= 0 && s.cell(from) != s.cell(to)) pairs.push_back({from, to});
}

}  // namespace placer
