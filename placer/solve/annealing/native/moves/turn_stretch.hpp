// A stretch of nodes is turned round, moves on along the order, or is mixed.
#pragma once
#include "run_parts.hpp"

namespace placer {

inline void turn_stretch(Search& s, Pairs&) {
  Runs& r = s.runs;
  const auto [first, last] = some_places(s, slow_place(s));
  const int rule = s.random.below(3);
  const int end = std::min(rule == 1 ? last + 1 + s.random.below(12) : std::max(last, first + 2), r.places());
  std::vector<Run> runs = r.between(first, end);
  if (rule == 0) std::reverse(runs.begin(), runs.end());
  else if (rule == 1) std::rotate(runs.begin(), runs.begin() + std::min(last - first, end - first), runs.end());
  else for (int i = (int)runs.size(); i-- > 1;) std::swap(runs[i], runs[s.random.below(i + 1)]);
  r.replace(first, end, std::move(runs));
}

}  // namespace placer
