// Two stretches of nodes change places; those between them shift unless both hold as much.
#pragma once
#include "run_parts.hpp"

namespace placer {

inline void swap_stretches(Search& s, Pairs&) {
  Runs& r = s.runs;
  std::pair<int, int> one = some_places(s, slow_place(s)), other = some_places(s, s.random.below(r.places()));
  if (one.first > other.first) std::swap(one, other);
  if (one.second > other.first) return;
  const auto total = [&](const std::pair<int, int>& of) { return r.begin[of.second] - r.begin[of.first]; };
  while (total(other) < total(one) && other.second < r.places()) ++other.second;
  if (total(one) == total(other)) {
    r.replace(one.first, one.second, r.between(other.first, other.second));
    r.replace(other.first, other.second, r.between(one.first, one.second));
    return;
  }
  if (other.second - one.first > Search::FAR) return;
  std::vector<Run> runs = r.between(other.first, other.second);
  for (const Run& run : r.between(one.second, other.first)) runs.push_back(run);
  for (const Run& run : r.between(one.first, one.second)) runs.push_back(run);
  r.replace(one.first, other.second, std::move(runs));
}

}  // namespace placer
