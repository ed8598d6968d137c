// Nodes of a stretch, perhaps with one more, are filled one after the other; the last takes
// what is left.
#pragma once
#include "run_parts.hpp"

namespace placer {

inline void fill_anew(Search& s, Pairs&) {
  Runs& r = s.runs;
  const int first = slow_place(s), end = std::min(first + 2 + s.random.below(8), r.places());
  std::vector<Run> runs = r.between(first, end);
  if (!r.idle.empty() && s.random.below(2)) runs.push_back({r.idle[s.random.below((int)r.idle.size())], 0});
  for (int i = (int)runs.size(); i-- > 1;) std::swap(runs[i], runs[s.random.below(i + 1)]);
  const bool backward = s.random.below(2);
  int left = r.begin[end] - r.begin[first];
  for (size_t i = 0; i < runs.size(); ++i) {
    Run& run = runs[backward ? runs.size() - 1 - i : i];
    run.length = std::min(left, r.room[run.node]);
    left -= run.length;
  }
  r.replace(first, end, std::move(runs));
}

}  // namespace placer
