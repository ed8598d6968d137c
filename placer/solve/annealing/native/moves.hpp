// The moves of the search: one row each, with how often it is tried beside the others.
#pragma once
#include "moves/eject.hpp"
#include "moves/fill_anew.hpp"
#include "moves/gather.hpp"
#include "moves/go_home.hpp"
#include "moves/join_nodes.hpp"
#include "moves/repair.hpp"
#include "moves/shift_cut.hpp"
#include "moves/swap_clusters.hpp"
#include "moves/swap_domains.hpp"
#include "moves/swap_nodes.hpp"
#include "moves/swap_sets.hpp"
#include "moves/swap_stretches.hpp"
#include "moves/to_mate.hpp"
#include "moves/to_partner.hpp"
#include "moves/turn_stretch.hpp"
#include "moves/unit.hpp"

namespace placer {

// What a move needs of a job to be tried: sets of two units or more, where units have partners
// (without these it is always tried); partners; or rules that are broken.
enum class Needs { nothing, sets, partners, rules };

struct Move {
  const char* name;
  double weight;
  void (*propose)(Search&, Pairs&);
  Needs needs = Needs::nothing;
};

inline const std::vector<Move> MOVES = {
    {"unit", 1.0, move_unit},
    {"swap domains", 0.05, swap_domains},
    {"to mate", 3.0, move_to_mate, Needs::sets},
    {"join part", 2.0, join_part, Needs::sets},
    {"move part", 1.0, move_part, Needs::sets},
    {"swap sets", 1.0, swap_sets, Needs::sets},
    {"eject", 2.0, eject, Needs::sets},
    {"to partner", 8.0, to_partner, Needs::partners},
    {"swap clusters", 4.0, swap_clusters, Needs::partners},
    {"repair", 10.0, repair, Needs::rules},
};
// Of a job that runs already.
inline const std::vector<Move> MOVES_HOMEWARD = [] {
  std::vector<Move> rows = MOVES;
  rows.push_back({"go home", 2.0, go_home});
  return rows;
}();
// Of runs on nodes.
inline const std::vector<Move> MOVES_OF_RUNS = {
    {"shift cut", 3.0, shift_cut},
    {"swap nodes", 3.0, swap_nodes},
    {"join nodes", 2.0, join_nodes},
    {"swap stretches", 1.0, swap_stretches},
    {"turn stretch", 1.0, turn_stretch},
    {"fill anew", 1.0, fill_anew},
};

}  // namespace placer
