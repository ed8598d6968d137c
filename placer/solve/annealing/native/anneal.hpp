// Simulated annealing on the exact cost (Kirkpatrick, Gelatt and Vecchi 1983, Science 220).
#pragma once
#include <memory>
#include <numeric>
#include "moves.hpp"

namespace placer {

struct Annealer {
  std::unique_ptr<Energy> energy;
  Cost& cost;
  Search search;
  std::vector<int64_t> tried, helped;  // of each move
  double best = 0.0;
  Ints best_slots;
  std::vector<Run> best_runs;
  int broken = 0;               // of the rules by the best

  Annealer(std::unique_ptr<Energy> given, int width, std::vector<Family> families)
      : energy(std::move(given)), cost(energy->cost()), search(*energy, width, std::move(families)),
        tried(std::max(MOVES_HOMEWARD.size(), MOVES_OF_RUNS.size())), helped(tried.size()) {
    seen.resize(search.slots);
  }

  void begin_walk(uint64_t seed) {
    search.random = Random(seed);
    energy->begin_walk(search.random);
  }
  void load(const Ints& slots) {
    cost.load(slots);
    search.fence.load(seats());
    search.count_room();
    search.count_away();
    best = cost.value() + fee();
    note_best();
  }
  void load_runs(std::vector<Run> runs) {
    search.runs.load(std::move(runs));
    Ints slots;
    for (int slot : search.runs.slots())
      for (int i = 0; i < search.width; ++i) slots.push_back(slot * search.width + i);
    load(slots);
  }

  // The usual change of the energy by a move, as a share of it.
  double usual_change(int tries, const Schedule& schedule) {
    energy->soften(2e-3 * energy->at_most(), 0.0, schedule);
    Reals found;
    for (int i = 0; i < tries; ++i) {
      const int kind = i % (int)rows().size();
      if (!is_of_use(rows()[kind])) continue;
      propose(kind);
      if (pairs.empty()) continue;
      cost.change(atoms());
      const double level = energy->level, change = std::fabs(energy->after() - level);
      if (change > 1e-12 * level && is_allowed()) found.push_back(change / energy->at_most());
      cost.undo();
    }
    if (found.empty()) return schedule.hot;
    std::nth_element(found.begin(), found.begin() + found.size() / 2, found.end());
    return found[found.size() / 2];
  }

  // So many moves after a share of the way, as hot as it is there.
  void walk(int64_t moves, double x, const Schedule& schedule) {
    const std::vector<Move>& rows = this->rows();
    Reals weight;
    for (const Move& move : rows) weight.push_back(is_of_use(move) ? move.weight : 0.0);
    const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
    temperature = (best - fee_of_best) * schedule.hot * std::pow(schedule.cold / schedule.hot, x);
    energy->soften(schedule.softness * temperature, x, schedule);
    for (int64_t i = 0; i < moves; ++i) {
      double pick = search.random.real() * total;
      int kind = 0;
      while (kind + 1 < (int)rows.size() && (pick -= weight[kind]) > 0) ++kind;
      propose(kind);
      ++tried[kind];
      if (pairs.empty()) continue;
      cost.change(atoms());
      const int64_t farther = search.away(before) - were_away;
      const double limit = energy->level - temperature * std::log(search.random.real() + 1e-300) -
                           search.home.price * (double)farther;
      const double after = energy->after();
      const bool mends = x >= LATE && search.fence.broken && this->mends();
      bool takes = mends || (is_near(after, limit) && is_allowed());
      if (takes) {
        cost.finish();
        takes = mends || energy->after() < limit;
      }
      if (!takes) {
        cost.undo();
        continue;
      }
      if (energy->after() + search.home.price * (double)farther < energy->level) ++helped[kind];
      energy->take();
      search.home.away += farther;
      cost.keep();
      note_moved();
      search.fence.move(left, taken);
      if (by_nodes()) search.runs.keep();
      keep_best();
    }
  }

  bool by_nodes() const { return !search.runs.room.empty(); }
  bool is_of_use(const Move& move) const {
    if (move.needs == Needs::rules) return search.fence.broken > 0;
    if (move.needs == Needs::partners) return search.partners.count() > 0;
    return move.needs == Needs::nothing || search.partners.count() == 0 || search.has_sets();
  }
  const std::vector<Move>& rows() const {
    if (by_nodes()) return MOVES_OF_RUNS;
    return search.home.is_any() ? MOVES_HOMEWARD : MOVES;
  }

 private:
  // From this share of the way on a change that mends what rules say is taken at any price.
  static constexpr double LATE = 0.5;
  // Blocks may be known as so much slower than their replicas.
  static constexpr double SLACK = 1e-3;
  double temperature = 0;
  Pairs pairs, spread;
  Seats left, taken;            // of the change

  void propose(int kind) {
    pairs.clear();
    Runs& runs = search.runs;
    runs.change.clear();
    rows()[kind].propose(search, pairs);
    if (runs.change.empty()) return;
    if (!runs.seat(search, pairs)) return;
    if (search.fence.is_any()) {
      runs.moved(left, taken);
      if (!search.fence.allows(left, taken)) return pairs.clear();
    }
    if (!pairs.empty()) return;
    // Where no unit leaves its slot nothing is to be priced.
    search.fence.move(left, taken);
    runs.keep();
  }
  // Units and the places they are on: slots, or nodes where runs walk.
  Seats seats() const {
    Seats found;
    if (!search.fence.is_any()) return found;
    for (int unit = 0; unit < search.units; ++unit)
      found.push_back({unit, by_nodes() ? search.runs.node_with(unit) : search.slot_of(unit)});
    return found;
  }
  // Whether rules allow the change that is priced; of runs only such are proposed.
  bool is_allowed() {
    if (by_nodes() || !search.fence.is_any()) return true;
    note_seats();
    return search.fence.allows(left, taken);
  }
  // Whether less is broken after the change that is priced.
  bool mends() {
    if (!by_nodes()) note_seats();
    return search.fence.broken_after(left, taken) < search.fence.broken;
  }
  void note_seats() {
    left.clear();
    taken.clear();
    for (size_t i = 0; i < before.size(); ++i) {
      const int unit = search.unit_at(before[i]);
      if (was_at[i] >= 0) left.push_back({was_at[i], before[i]});
      if (unit >= 0) taken.push_back({unit, before[i]});
    }
  }
  // Whether what is priced late may bring a change below a limit: rings fall seldom by more
  // than a temperature, so that they might is looked into seldom.
  bool is_near(double after, double limit) {
    const double near = after - temperature - energy->late_excess();
    return near < limit || (near - energy->late_hope() < limit && !search.random.below(Fence::RARELY));
  }
  void note_best() {
    energy->note_best();
    broken = search.fence.broken;
    fee_of_best = fee();
    best_slots = cost.layout.slot_of;
    if (by_nodes()) best_runs = search.runs.order;
  }
  const Pairs& atoms() {
    // Room changes as pairs are made one after the other: noted from the state before.
    before.clear();
    was_at.clear();
    seen.wipe();
    for (const auto& [one, other] : pairs)
      for (int slot : {one, other})
        if (seen.mark(slot)) before.push_back(slot), was_at.push_back(search.unit_at(slot));
    were_away = search.away(before);
    if (search.width == 1) return pairs;
    spread.clear();
    for (const auto& [one, other] : pairs)
      for (int i = 0; i < search.width; ++i)
        spread.push_back({one * search.width + i, other * search.width + i});
    return spread;
  }
  Ints before, was_at;          // slots of the change, and who was there
  Marks seen;
  int64_t were_away = 0;
  double fee_of_best = 0.0;
  double fee() const { return search.home.price * (double)search.home.away; }
  void note_moved() {
    for (size_t i = 0; i < before.size(); ++i)
      search.room[search.cell(before[i])] += (search.unit_at(before[i]) < 0) - (was_at[i] < 0);
  }
  void keep_best() {
    if (search.fence.broken > broken) return;
    const bool repairs = search.fence.broken < broken;
    if (!repairs && energy->at_most() + fee() > best * (1 + SLACK)) return;
    if (!repairs && cost.at_least() + fee() >= best * (1 - 1e-12)) return;
    const double value = cost.value() + fee();
    if (!repairs && value >= best * (1 - 1e-12)) return;
    best = value;
    note_best();
  }
};

}  // namespace placer
