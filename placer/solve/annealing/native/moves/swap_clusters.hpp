// A unit and partners of its own domain go to the domain of another partner, or to any, for
// as many of those who have fewest partners there.
#pragma once
#include "to_partner.hpp"

namespace placer {

inline void swap_clusters(Search& s, Pairs& pairs) {
  const int unit = s.waited_for(2), home = s.cell_of(unit);
  int to = s.cell(s.random.below(s.slots));
  if (s.random.below(10)) {
    const int partner = s.partner_of(unit);
    if (partner < 0) return;
    to = s.cell_of(partner);
  }
  if (to == home) return;
  const Range range = s.range(0, to), own = s.range(0, home);
  const int most = std::min((own.end - own.first) / 2, range.end - range.first);
  if (most < 2) return;
  int wanted = 2;
  while (wanted < most && s.random.below(3)) ++wanted;
  Ints going{unit};
  for (int tries = 0; tries < 2 * wanted && (int)going.size() < wanted; ++tries) {
    const int one = s.partner_of(going[s.random.below((int)going.size())]);
    if (one < 0 || s.cell_of(one) != home || std::find(going.begin(), going.end(), one) != going.end()) continue;
    going.push_back(one);
  }
  const bool into_room = s.random.below(2), looks = s.random.below(2);
  for (int one : going) {
    int slot = -1;
    for (int tries = 0; tries < 4 && slot < 0; ++tries) {
      const int found = loose_slot(s, range, into_room, looks ? 4 : 1);
      if (found >= 0 && !Search::has(pairs, found)) slot = found;
    }
    if (slot >= 0) pairs.push_back({s.slot_of(one), slot});
  }
}

}  // namespace placer
