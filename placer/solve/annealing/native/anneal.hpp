// Simulated annealing on the exact step (Kirkpatrick, Gelatt and Vecchi 1983, Science 220).
//
// The step is a maximum, and most changes leave a maximum alone. So a walk goes down on a
// soft one, with a little of the mean besides, or blocks that are not the slowest become as
// slow; what is kept is judged by the step itself.
#pragma once
#include "moves.hpp"

namespace placer {

struct Schedule {
  double hot, cold;          // share of the value
  double softness = 20.0;    // of the maximum, in temperatures
  double mean_hot = 0.01, mean_cold = 0.003;
  double traffic = 0.02, rings = 0.1;  // at first; none at the end
};

struct Annealer {
  Search search;
  double best = 0.0;
  Ints best_slots;
  std::vector<Run> best_runs;
  int64_t tried = 0;

  Annealer(StepTime& step, uint64_t seed, int width, std::vector<Family> families, Rows of_block)
      : search(step, seed, width, std::move(families), std::move(of_block)) {}

  void load(const Ints& slots) {
    search.step.load(slots);
    search.count_room();
    best = search.step.value();
    note_best();
  }
  void load_runs(std::vector<Run> runs) {
    search.runs.load(std::move(runs));
    load(search.runs.slots());
  }

  // The usual change of the soft step by a move, as a share of it.
  double usual_change(int tries, const Schedule& schedule) {
    StepTime& step = search.step;
    soften(2e-3 * step.at_most(), 0.0, schedule);
    Reals found;
    for (int i = 0; i < tries; ++i) {
      propose(i % (int)rows().size());
      if (pairs.empty()) continue;
      step.change(atoms());
      const double change = std::fabs(soft() - energy);
      if (change > 1e-12 * energy) found.push_back(change / step.at_most());
      step.undo();
    }
    if (found.empty()) return schedule.hot;
    std::nth_element(found.begin(), found.begin() + found.size() / 2, found.end());
    return found[found.size() / 2];
  }

  // So many moves from one share of the way to another.
  void walk(int64_t moves, double begin, double end, const Schedule& schedule) {
    StepTime& step = search.step;
    const std::vector<Move>& rows = this->rows();
    double total = 0.0;
    for (const Move& move : rows) total += move.weight;
    for (int64_t i = 0; i < moves; ++i) {
      if (i % REFRESH == 0) {
        const double x = begin + (end - begin) * (double)i / (double)moves;
        temperature = best * schedule.hot * std::pow(schedule.cold / schedule.hot, x);
        soften(schedule.softness * temperature, x, schedule);
      }
      double pick = search.random.real() * total;
      int kind = 0;
      while (kind + 1 < (int)rows.size() && (pick -= rows[kind].weight) > 0) ++kind;
      propose(kind);
      ++tried;
      if (pairs.empty()) continue;
      step.change(atoms());
      const double limit = energy - temperature * std::log(search.random.real() + 1e-300);
      double after = soft();
      // What gradients may gain at most is all that they cost.
      const double gain = search.has_experts ? temperature : temperature + step.exposed_s + rings_part * step.background;
      bool takes = after - gain < limit;
      if (takes) {
        step.finish();
        after = soft();
        takes = after < limit;
      }
      if (!takes) {
        step.undo();
        continue;
      }
      sum = next_sum;
      times = next_times;
      energy = after;
      step.keep();
      note_moved();
      if (by_nodes()) search.runs.keep();
      keep_best();
    }
  }

 private:
  static constexpr int REFRESH = 2000;
  // Blocks may be told so much slower than their replicas.
  static constexpr double SLACK = 1e-3;
  double temperature = 0, width = 1, target = 0, mean_part = 0, traffic_part = 0, rings_part = 0;
  double sum = 0, times = 0, energy = 0, next_sum = 0, next_times = 0;
  Pairs pairs, spread;

  bool by_nodes() const { return !search.runs.room.empty(); }
  const std::vector<Move>& rows() const { return by_nodes() ? MOVES_OF_RUNS : MOVES; }
  void propose(int kind) {
    pairs.clear();
    Runs& runs = search.runs;
    runs.change.clear();
    rows()[kind].propose(search, pairs);
    if (runs.change.empty()) return;
    const auto slot_of = [&](int unit) { return search.slot_of(unit); };
    const auto unit_at = [&](int slot) { return search.unit_at(slot); };
    // Where no unit leaves its slot nothing is to be priced.
    if (runs.seat(slot_of, unit_at, pairs) && pairs.empty()) runs.keep();
  }
  void note_best() {
    best_slots = search.step.layout.slot_of;
    if (by_nodes()) best_runs = search.runs.order;
  }
  const Pairs& atoms() {
    // Room changes as pairs are made one after the other: noted from the state before.
    before.clear();
    for (const auto& [one, other] : pairs) {
      before.push_back(one);
      before.push_back(other);
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    was_free.clear();
    for (int slot : before) was_free.push_back(search.unit_at(slot) < 0);
    if (search.width == 1) return pairs;
    spread.clear();
    for (const auto& [one, other] : pairs)
      for (int i = 0; i < search.width; ++i)
        spread.push_back({one * search.width + i, other * search.width + i});
    return spread;
  }
  Ints before;
  std::vector<char> was_free;
  void note_moved() {
    for (size_t i = 0; i < before.size(); ++i)
      search.room[search.cell(before[i])] += (search.unit_at(before[i]) < 0) - was_free[i];
  }
  void keep_best() {
    if (search.step.at_most() > best * (1 + SLACK)) return;
    const double value = search.step.value();
    if (value >= best * (1 - 1e-12)) return;
    best = value;
    note_best();
  }
  // The soft maximum anew, as wide as told.
  void soften(double wide, double x, const Schedule& schedule) {
    StepTime& step = search.step;
    width = wide;
    target = step.longest_s;
    const double value = step.at_most();
    mean_part = schedule.mean_hot * std::pow(schedule.mean_cold / schedule.mean_hot, x);
    traffic_part = schedule.traffic * (1 - x) * value * 1e-2 / std::max(step.traffic, 1e-12);
    rings_part = (search.has_experts ? schedule.rings : 1.0) * (1 - x) / std::max(1, step.ring_groups);
    sum = times = 0.0;
    for (double seconds : step.block_s) {
      sum += std::exp((seconds - target) / width);
      times += seconds;
    }
    energy = level(sum, times);
  }
  double level(double of_sum, double of_times) const {
    const StepTime& step = search.step;
    return target + width * std::log(std::max(of_sum, 1e-300)) + mean_part * of_times +
           traffic_part * step.traffic + step.exposed_s + rings_part * step.background;
  }
  double soft() {
    const StepTime& step = search.step;
    next_sum = sum;
    next_times = times;
    const Ints& changed = step.blocks_changed();
    for (size_t i = 0; i < changed.size(); ++i) {
      const double now = step.block_s[changed[i]], was = step.block_before(i);
      if (now == was) continue;
      next_sum += std::exp((now - target) / width) - std::exp((was - target) / width);
      next_times += now - was;
    }
    return level(next_sum, next_times);
  }
};

}  // namespace placer
