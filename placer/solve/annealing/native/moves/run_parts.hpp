// What moves of runs have in common: who waits, whom it might be near, and stretches of
// whole groups.
#pragma once
#include "../search.hpp"

namespace placer {

// The place of a unit of one of the slowest blocks.
inline int slow_place(Search& s) { return s.runs.place_of(s.waited_for(1 + s.random.below(6))); }

// A node in a domain that holds a mate or partner of a place's units, or any.
inline int other_node(Search& s, int at) {
  const Runs& r = s.runs;
  const int rule = s.random.below(4);
  if (rule == 0) return r.order[s.random.below(r.places())].node;
  if (rule == 1 && !r.idle.empty()) return r.idle[s.random.below((int)r.idle.size())];
  const int mate = s.mate_of(r.begin[at] + s.random.below(r.order[at].length));
  const int level = s.random.below(s.levels);
  return r.node_of_slot[s.any_in(s.range(level, s.domain(level, s.slot_of(mate))))];
}

// Around a place: as few as begin and end with groups of some size, those in one domain, or
// as many from it on at random.
inline std::pair<int, int> some_places(Search& s, int at) {
  const Runs& r = s.runs;
  const int groups = (int)r.sizes.size(), pick = s.random.below(groups + 2);
  if (pick == groups) return {at, std::min(at + 1 + s.random.below(4), r.places())};
  int first = at, end = at + 1;
  if (pick > groups) {
    const int level = s.random.below(s.levels);
    const auto home = [&](int place) { return s.domain(level, s.slot_of(r.begin[place])); };
    while (first > 0 && home(first - 1) == home(at)) --first;
    while (end < r.places() && home(end) == home(at)) ++end;
    return {first, end};
  }
  const int size = r.sizes[pick];
  for (int i = 0; i < Search::FAR && r.begin[first] % size; ++i) --first;
  for (int i = 0; i < Search::FAR && r.begin[end] % size && end < r.places(); ++i) ++end;
  return {first, end};
}

}  // namespace placer
