// The moves of the search: one row each, with how often it is tried at first.
#pragma once
#include "moves/dissolve.hpp"
#include "moves/eject.hpp"
#include "moves/fill_anew.hpp"
#include "moves/gather.hpp"
#include "moves/join_nodes.hpp"
#include "moves/open_node.hpp"
#include "moves/shift_cut.hpp"
#include "moves/swap_domains.hpp"
#include "moves/swap_mates.hpp"
#include "moves/swap_nodes.hpp"
#include "moves/swap_racks.hpp"
#include "moves/swap_sets.hpp"
#include "moves/swap_stretches.hpp"
#include "moves/to_mate.hpp"
#include "moves/turn_stretch.hpp"
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
// Of runs on nodes.
inline const std::vector<Move> MOVES_OF_RUNS = {
    {"shift cut", 3.0, shift_cut},           {"open node", 0.5, open_node},
    {"swap nodes", 3.0, swap_nodes},         {"join nodes", 2.0, join_nodes},
    {"swap stretches", 1.0, swap_stretches}, {"turn stretch", 1.0, turn_stretch},
    {"fill anew", 1.0, fill_anew},           {"swap racks", 0.05, swap_racks},
};

}  // namespace placer
