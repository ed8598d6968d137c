// What walks go down on: the hop cost itself, or a soft maximum of the step.
#pragma once
#include <memory>
#include <numeric>
#include "../../score/native/hops.hpp"
#include "../../score/native/step.hpp"
#include "../../score/native/random.hpp"

namespace placer {

struct Schedule {
  double hot, cold;          // share of the value
  double softness = 20.0;    // of the maximum, in temperatures
  double mean_hot = 0.01, mean_cold = 0.003;
  double traffic = 0.02, rings = 0.1;  // at first; none at the end
  double cut = 0.05;         // of kinds: how far below their best the target lies
};

struct Energy {
  double level = 0.0;  // of the placement that is kept

  virtual ~Energy() = default;
  virtual Cost& cost() = 0;
  virtual double at_most() = 0;  // the cost, or soon known not to be below
  virtual void soften(double wide, double x, const Schedule& schedule) = 0;
  virtual double after() = 0;    // of a change
  virtual double late_excess() { return 0.0; }  // of kinds that `finish` prices
  virtual double late_hope() { return 0.0; }     // no more than that do rings fall
  virtual void take() = 0;       // keep the change
  virtual void note_best() {}    // the placement is the best so far
  virtual void begin_walk(Random&) {}
  // A unit that is worth moving, the best of some; with one try, any. On the hop cost 2 to 4
  // tries give the dearer of two, any other number a random one.
  virtual int waited_for(Random& random, int tries) = 0;
};

// A sum has no plateaus.
struct HopEnergy : Energy {
  Hops& hops;
  int width;  // atoms of a unit

  HopEnergy(Hops& hops, int width) : hops(hops), width(width) {}

  Cost& cost() override { return hops; }
  double at_most() override { return hops.value(); }
  void soften(double, double, const Schedule&) override { level = hops.value(); }
  double after() override { return next = hops.value(); }
  void take() override { level = next; }
  int waited_for(Random& random, int tries) override {
    const int units = (int)hops.layout.slot_of.size() / width;
    int unit = random.below(units);
    if (tries < 2 || tries > 4) return unit;
    const int other = random.below(units);
    return hops.cost_of(other * width) > hops.cost_of(unit * width) ? other : unit;
  }

 private:
  double next = 0.0;
};

// The step is a maximum, and most changes leave a maximum alone. So a walk goes down on a
// soft one, with a little of the mean besides, or blocks that are not the slowest become as
// slow; what is kept is judged by the step itself.
struct StepEnergy : Energy {
  StepTime& step;
  int width;               // atoms of a unit
  Rows of_block;           // units of each block of replicas
  bool has_experts;
  const Operation* tokens = nullptr;  // all-to-alls of experts

  StepEnergy(StepTime& step, int width, Rows of_block, bool has_experts)
      : step(step), width(width), of_block(std::move(of_block)), has_experts(has_experts), best_s(step.kinds.size()) {
    for (const Instance& one : step.instances)
      instances.push_back(std::make_unique<StepEnergy>(*one.step, width, Rows{}, false));
    role_s.assign(instances.size(), 0.0);
    for (const Axis& axis : step.axes) {
      const Operation* found = step.operations[axis.operation].get();
      if (!axis.is_hop && dynamic_cast<const Exchange*>(found)) tokens = found;
    }
  }

  Cost& cost() override { return step; }
  double at_most() override { return step.at_most(); }
  void note_best() override {
    for (size_t k = 0; k < step.kinds.size(); ++k) best_s[k] = largest(step.kinds[k]);
    for (auto& one : instances) one->note_best();
  }
  // A walk may let one kind take what all others take besides: all groups of a kind can be
  // cut at once only if the first that is costs nothing.
  void begin_walk(Random& random) override {
    const int kinds = (int)step.kinds.size();
    yielding = kinds > 1 ? random.below(kinds + 1) : kinds;
  }
  void soften(double wide, double x, const Schedule& schedule) override {
    Reals hidden, exposed;
    for (size_t k = 0; k < step.kinds.size(); ++k) {
      const Kind& kind = step.kinds[k];
      hidden.push_back(kind.hidden + kind.by_roles * step.of_roles(&StepTime::at_least));
      exposed.push_back(std::max(0.0, kind.times * best_s[k] - hidden[k]));
    }
    const double all = std::accumulate(exposed.begin(), exposed.end(), 0.0);
    for (size_t k = 0; k < step.kinds.size(); ++k) {
      const Kind& kind = step.kinds[k];
      double target = std::max(best_s[k] * (1 - schedule.cut), hidden[k] / kind.times);
      if (yielding == (int)k) target += (all - exposed[k]) * (1 - schedule.cut) / kind.times;
      for (int o : kind.operations) step.operations[o]->aim(target);
    }
    roles_target = step.least_roles_s;
    for (size_t i = 0; i < instances.size(); ++i) {
      instances[i]->soften(wide, x, schedule);
      role_s[i] = step.instances[i].steps * instances[i]->level;
      roles_target = std::max(roles_target, role_s[i] * (1 - schedule.cut));
    }
    breadth = wide;
    target = step.now.longest_s;
    const double value = step.at_most();
    mean_part = schedule.mean_hot * std::pow(schedule.mean_cold / schedule.mean_hot, x);
    traffic_part = schedule.traffic * (1 - x) * value * 1e-2 / std::max(step.now.traffic, 1e-12);
    rings_part = (has_experts ? schedule.rings : 1.0) * (1 - x) / std::max(1, step.ring_groups);
    sum = times = 0.0;
    for (double seconds : step.block_s) {
      sum += std::exp((seconds - target) / breadth);
      times += seconds;
    }
    roles_s = 0.0;
    for (double seconds : role_s) roles_s += of_role(seconds);
    level = soft(sum, times) + own_excess(true) + roles_s;
  }
  double after() override {
    next_sum = sum;
    next_times = times;
    const Ints& changed = step.blocks_changed();
    for (size_t i = 0; i < changed.size(); ++i) {
      const double now = step.block_s[changed[i]], was = step.block_before(i);
      if (now == was) continue;
      next_sum += std::exp((now - target) / breadth) - std::exp((was - target) / breadth);
      next_times += now - was;
    }
    next_roles = roles_s;
    for (int i : step.changed_instances)
      next_roles += of_role(step.instances[i].steps * instances[i]->after()) - of_role(role_s[i]);
    return next = soft(next_sum, next_times) + own_excess(true) + next_roles;
  }
  double late_excess() override {
    double sum = own_excess(false);
    for (int i : step.changed_instances) sum += step.instances[i].steps * instances[i]->late_excess();
    return sum;
  }
  double late_hope() override { return has_experts ? 0.0 : step.now.exposed_s + rings_part * step.now.background; }
  void take() override {
    for (int i : step.changed_instances) {
      role_s[i] = step.instances[i].steps * instances[i]->next;
      instances[i]->take();
    }
    roles_s = next_roles;
    sum = next_sum;
    times = next_times;
    level = next;
  }
  // A unit of the slowest of some blocks, or one that has a part in what is above a target.
  int waited_for(Random& random, int tries) override {
    if (of_block.count() == 0 || (!step.kinds.empty() && random.below(2))) {
      if (tries > 1 && !step.kinds.empty())
        if (const int unit = above_target(random); unit >= 0) return unit;
      return random.below((int)step.layout.slot_of.size() / width);
    }
    int block = random.below(of_block.count());
    for (int i = 1; i < tries; ++i) {
      const int other = random.below(of_block.count());
      if (step.block_s[other] > step.block_s[block]) block = other;
    }
    const int unit = of_block[block].any(random);
    if (!tokens || tries <= 3) return unit;
    const int other = of_block[block].any(random);
    return exchange_s(other) > exchange_s(unit) ? other : unit;
  }

 private:
  double breadth = 1, target = 0, mean_part = 0, traffic_part = 0, rings_part = 0;
  double sum = 0, times = 0, next_sum = 0, next_times = 0, next = 0;

  Reals best_s;  // the largest entry of each kind in the best placement
  int yielding = -1;
  std::vector<std::unique_ptr<StepEnergy>> instances;
  Reals role_s;          // of each instance, softly
  double roles_target = 0, roles_s = 0, next_roles = 0;

  // Instances that are faster than the slowest count little.
  double of_role(double seconds) const { return std::max(0.0, seconds - roles_target) + mean_part * seconds; }
  double largest(const Kind& kind) const {
    double most = 0.0;
    for (int o : kind.operations) most = std::max(most, step.operations[o]->largest());
    return most;
  }
  // How far kinds are above their targets, all or those that are priced late.
  double own_excess(bool all) const {
    double sum = 0.0;
    for (const Kind& kind : step.kinds)
      for (int o : kind.operations)
        if (all || step.operations[o]->is_slow()) sum += kind.times * step.operations[o]->excess.sum;
    return sum;
  }
  int above_target(Random& random) {
    const Kind& kind = step.kinds[random.below((int)step.kinds.size())];
    if (kind.operations.empty()) return -1;  // nobody has a part in it
    Operation& op = *step.operations[kind.operations[random.below((int)kind.operations.size())]];
    if (op.above.list.empty()) return -1;
    const int atom = op.part_of(op.above.list[random.below((int)op.above.list.size())], random);
    return atom < 0 ? -1 : atom / width;
  }
  double exchange_s(int unit) const {
    const int atom = unit * width;
    return tokens->of_atom[atom].size() ? tokens->of(0, tokens->of_atom[atom][0]) : 0.0;
  }
  double soft(double of_sum, double of_times) const {
    return target + breadth * std::log(std::max(of_sum, 1e-300)) + mean_part * of_times +
           traffic_part * step.now.traffic + step.now.exposed_s + rings_part * step.now.background;
  }
};

}  // namespace placer
