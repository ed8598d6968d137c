// A node takes ranks of another one along the order: all cuts between them shift.
#pragma once
#include "run_parts.hpp"

namespace placer {

inline void shift_cut(Search& s, Pairs&) {
  Runs& r = s.runs;
  const int here = slow_place(s), step = s.random.below(2) ? 1 : -1;
  const bool gives = s.random.below(2);
  int there = here;
  for (int i = 0; i < Search::FAR; ++i) {
    there += step;
    if (there < 0 || there >= r.places()) return;
    if (s.random.below(3) && (!gives || r.spare(there))) break;
  }
  const int from = gives ? here : there, to = gives ? there : here;
  const int most = std::min(r.order[from].length, r.spare(to));
  if (!most) return;
  int count = 1 + (s.random.below(2) ? s.random.below(most) : 0);
  if (s.random.below(2)) {  // a group begins or ends at the cut
    const int size = r.sizes[s.random.below((int)r.sizes.size())];
    const int cut = to > from ? r.begin[from + 1] : -r.begin[from];
    const int over = ((cut % size) + size) % size;
    if (over && over <= most) count = over;
  }
  const int first = std::min(from, to), end = std::max(from, to) + 1;
  std::vector<Run> runs = r.between(first, end);
  runs[from - first].length -= count;
  runs[to - first].length += count;
  r.replace(first, end, std::move(runs));
}

}  // namespace placer
