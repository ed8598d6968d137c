// The moves of the search: one row each, with how often it is tried at first.
#pragma once
#include "moves/dissolve.hpp"
#include "moves/eject.hpp"
#include "moves/gather.hpp"
#include "moves/swap_domains.hpp"
#include "moves/swap_mates.hpp"
#include "moves/swap_sets.hpp"
#include "moves/to_mate.hpp"
#include "moves/unit.hpp"

namespace placer {

struct Move {
  const char* name;
  double weight;
  void (*propose)(Search&, Pairs&);
};

inline const std::vector<Move> MOVES = {
    {"unit", 1.0, move_unit},           {"to mate", 3.0, move_to_mate},
    {"join part", 2.0, join_part},      {"move part", 1.0, move_part},
    {"swap sets", 1.0, swap_sets},      {"swap mates", 1.0, swap_mates},
    {"eject", 2.0, eject},              {"swap domains", 0.05, swap_domains},
    {"dissolve", 1.0, dissolve},
};

}  // namespace placer
