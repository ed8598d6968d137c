// The step of a placement, kept up to date change by change.
//
// step = slowest replica's pipeline + synchronisation that nothing hides + what is fixed. A stage
// of a replica waits for the slowest of its groups of each axis. Replicas that groups join
// are a block; all of its stages at their slowest say at most what its replicas take, and
// which replica takes how long is worked out only for blocks that may be the slowest.
#pragma once
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include "exchange.hpp"
#include "flows.hpp"
#include "pipeline.hpp"
#include "rings.hpp"
#include "sync.hpp"

namespace placer {

// A convex piecewise linear function: the largest of some lines.
struct Lines {
  Reals slope, start;
  double at(double x) const {
    double most = 0.0;
    for (size_t i = 0; i < slope.size(); ++i) most = std::max(most, start[i] + slope[i] * x);
    return most;
  }
};

// An axis of the pipeline: what its groups add to the stages that they touch.
struct Axis {
  int operation = 0;
  Rows cells, groups;             // cells of each group, groups of each cell
  Lines forward, backward;        // of the slowest group, added to a full chunk
  bool is_hop = false;            // a message to the next stage
  Rows of_block, groups_of_block; // the same of (block, stage)
  Reals slowest;                  // of each (block, stage)
};

// Groups of one kind of the user's own, or the traffic: what its slowest takes, so many times,
// is exposed beyond what hides it.
struct Kind {
  Ints operations;
  double times = 1.0, hidden = 0.0;
  double by_roles = 0.0;  // hidden besides, of what roles take
};

struct StepTime;

// An instance of a role: a job on some of the atoms, so many steps a cycle.
struct Instance {
  StepTime* step = nullptr;
  double steps = 1.0;
  Ints atoms;  // of the workload
};

struct StepTime : Cost {
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<Kind> kinds;
  std::vector<Instance> instances;
  double least_roles_s = 0.0;            // what no placement changes
  Ints changed_instances;
  std::vector<Axis> axes;
  Sync sync;
  Pipeline pipeline;
  int replicas = 0, stages = 0;
  double fixed = 0.0;
  Reals compute, host;                   // forward and backward of a full chunk, and the least time of each
  Reals share, pace, end;                // of the first and the last chunk of all; `end`: of what is no layer there
  Reals pace_full;                       // of a stage
  Rows cells_of_atom, atoms_of_cell;     // cells of the ranks of each atom
  bool has_speeds = false;
  Ints block_of_replica;
  Rows replicas_of_block;

  Reals block_s;                         // at most what the replicas of a block take
  struct Sums {
    double longest_s = 0.0;              // of the blocks
    double exposed_s = 0.0;
    double own_s = 0.0;                  // of kinds, or soon known to be more
    double traffic = 0.0, background = 0.0;  // of all groups of axes, and of all others
  };
  Sums now;
  int ring_groups = 0;
  bool is_late = false;                  // slow operations are not priced yet

  int add(const std::string& sort, const Given& of) {
    using Make = std::unique_ptr<Operation> (*)(const Cost&, const Given&);
    static const std::map<std::string, Make> SORTS = {
        {"all_reduces", &built<AllReduces>}, {"by_scorer", &built<ByScorer>}, {"exchange", &built<Exchange>},
        {"flows", &built<Flows>},            {"inside", &built<Inside>},      {"messages", &built<Messages>},
        {"relay", &built<Relay>},            {"rings", &built<Rings>},
    };
    operations.push_back(SORTS.at(sort)(*this, of));
    return (int)operations.size() - 1;
  }
  void add_axis(const Given& of) {
    axes.push_back({of.number("operation"), of.rows("cells"), {}, {of.reals("forward"), of.reals("forward_start")},
                    {of.reals("backward"), of.reals("backward_start")}, of.flag("is_hop"), {}, {}, {}});
  }
  bool calls_scorer() const {
    for (const auto& op : operations)
      if (dynamic_cast<const ByScorer*>(op.get())) return true;
    for (const Instance& one : instances)
      if (one.step->calls_scorer()) return true;
    return false;
  }
  // The replicas, when all else is known.
  void set_stages(const Given& of) {
    pipeline.set(of);
    stages = of.number("stages");
    fixed = of.real("fixed");
    compute = of.reals("compute");
    host = of.reals("host");
    share = of.reals("share");
    pace = of.reals("pace");
    end = of.reals("end");
    pace_full = of.reals("pace_full");
    has_speeds = of.flag("has_speeds");
    cells_of_atom = of.rows("cells");
    block_of_replica = of.ints("block");
    replicas = (int)block_of_replica.size();
    Rows blocks;
    for (int block : block_of_replica) blocks.entry.push_back(block), blocks.start.push_back((int)blocks.entry.size());
    replicas_of_block = blocks.turned(1 + *std::max_element(block_of_replica.begin(), block_of_replica.end()));
    start();
  }

  double at_most() const { return now.longest_s + now.exposed_s + fixed + of_cycle(of_roles(&StepTime::at_most)); }
  double at_least() override {
    const double rest = (joins_nobody ? now.longest_s : 0.0) + now.exposed_s + fixed;
    return rest + of_cycle(of_roles(&StepTime::at_least));
  }
  double value() override {
    refine();
    return pipeline_s() + now.exposed_s + fixed + of_cycle(of_roles(&StepTime::value));
  }
  // The slowest role.
  template <class Seconds> double of_roles(Seconds seconds) const {
    double most = least_roles_s;
    for (const Instance& one : instances) most = std::max(most, one.steps * (one.step->*seconds)());
    return most;
  }
  // Roles, and what they leave exposed.
  double of_cycle(double roles) const {
    if (roles == 0.0) return now.own_s;
    double sum = roles;
    for (const Kind& kind : kinds) sum += kind_s(kind, roles);
    return sum;
  }
  double kind_s(const Kind& kind, double roles = 0.0) const {
    double most = 0.0;
    for (int o : kind.operations) {
      const Operation& op = *operations[o];
      for (int g = 0; g < op.groups; ++g) most = std::max(most, op.seconds[g]);
    }
    return std::max(0.0, kind.times * most - kind.hidden - kind.by_roles * roles);
  }

  // The slowest replica. Blocks that may not be it are passed over.
  double pipeline_s() {
    if (joins_nobody) return now.longest_s;
    double most = 0.0;
    const auto look_at = [&](int b) {
      if (block_s[b] <= most) return;
      for (int d : replicas_of_block[b])
        most = std::max(most, replica_s(d));
    };
    look_at((int)(std::max_element(block_s.begin(), block_s.end()) - block_s.begin()));
    for (size_t b = 0; b < block_s.size(); ++b) look_at((int)b);
    return most;
  }
  double replica_s(int replica) {
    for (int p = 0; p < stages; ++p) {
      const int cell = replica * stages + p;
      const auto waits = [&](const Axis& axis) { return largest(axis, axis.groups, cell); };
      of_replica[p] = stage(p, slowness(cell, atoms_of_cell), waits);
    }
    return walk(of_replica.data());
  }

  void start() {
    const int blocks = replicas_of_block.count(), cells = blocks * stages;
    instance_of.assign(layout.site.size(), -1);
    for (size_t i = 0; i < instances.size(); ++i)
      for (int atom : instances[i].atoms) instance_of[atom] = (int)i;
    instances_seen.resize(instances.size());
    joins_nobody = blocks == replicas;
    block_s.assign(blocks, 0.0);
    slow.assign(cells, 1.0);
    peak_s.assign(sync.parts.size() * sync.stages, 0.0);
    cells_seen.resize(cells);
    blocks_seen.resize(blocks);
    memory.assign(size_t(1) << 16, Known{});
    parts_of.assign(operations.size(), {});
    for (const Sync::Part& part : sync.parts) {
      parts_of[part.operation].push_back((int)stages_of.size());
      stages_of.push_back(part.groups.turned(operations[part.operation]->groups));
    }
    stages_seen.resize(stages);
    axes_of.assign(operations.size(), {});
    for (const Kind& kind : kinds)
      for (int o : kind.operations) operations[o]->is_of_kind = true;
    auto in_blocks = [&](const Rows& of) {
      Rows found;
      for (int row = 0; row < of.count(); ++row) {
        cells_seen.wipe();
        for (int c : of[row]) {
          const int cell = block_of_replica[c / stages] * stages + c % stages;
          if (cells_seen.mark(cell)) found.entry.push_back(cell);
        }
        found.start.push_back((int)found.entry.size());
      }
      return found;
    };
    for (size_t a = 0; a < axes.size(); ++a) {
      axes_of[axes[a].operation].push_back((int)a);
      axes[a].groups = axes[a].cells.turned(replicas * stages);
      axes[a].of_block = in_blocks(axes[a].cells);
      axes[a].groups_of_block = axes[a].of_block.turned(cells);
      axes[a].slowest.assign(cells, 0.0);
    }
    for (size_t o = 0; o < operations.size(); ++o) {
      Operation& op = *operations[o];
      if (op.is_of_kind) continue;
      op.total = axes_of[o].empty() ? &now.background : &now.traffic;
      if (axes_of[o].empty()) ring_groups += op.groups;
    }
    of_atom_in_blocks = in_blocks(cells_of_atom);
    atoms_of_block = of_atom_in_blocks.turned(cells);
    atoms_of_cell = cells_of_atom.turned(replicas * stages);
    of_block.resize(cells);
    of_replica.resize(stages);
    dirty_seen.resize(cells);
    work.resize(2 * stages + 4);
    hop.resize(stages);
  }

  void load(const Ints& slots) override {
    layout.load(slots);
    Ints own;
    for (const Instance& one : instances) {
      own.clear();
      for (int atom : one.atoms) own.push_back(slots[atom]);
      one.step->load(own);
    }
    for (auto& op : operations) op->rebuild();
    now.traffic = now.background = 0.0;
    for (const auto& op : operations)
      for (double s : op->mean)
        if (op->total) *op->total += s;
    for (int c = 0; c < (int)slow.size(); ++c) {
      for (Axis& axis : axes) axis.slowest[c] = largest(axis, axis.groups_of_block, c);
      slow[c] = slowness(c, atoms_of_block);
      of_block[c] = stage_of_block(c);
    }
    for (size_t b = 0; b < block_s.size(); ++b) block_s[b] = walk(&of_block[b * stages]);
    for (size_t k = 0; k < peak_s.size(); ++k) peak_s[k] = peak((int)k);
    now.exposed_s = sync.exposed(peak_s);
    now.own_s = of_kinds();
    now.longest_s = *std::max_element(block_s.begin(), block_s.end());
    is_open = false;
    forget();
  }

  // Prices the pipelines; `finish` prices the rest.
  void change(const Pairs& pairs) override {
    atoms.clear();
    for (const auto& [one, other] : pairs) {
      if (layout.atom_at[one] >= 0) atoms.push_back(layout.atom_at[one]);
      if (layout.atom_at[other] >= 0) atoms.push_back(layout.atom_at[other]);
    }
    changed_instances.clear();
    if (!instances.empty()) {
      instances_seen.wipe();
      for (int atom : atoms)
        if (const int i = instance_of[atom]; i >= 0 && instances_seen.mark(i)) changed_instances.push_back(i);
      for (int i : changed_instances) instances[i].step->change(pairs);
    }
    for (auto& op : operations) op->touch(atoms);
    layout.change(pairs);
    for (auto& op : operations) op->moved();
    before = now;
    is_open = true;
    dirty_blocks.clear();
    blocks_before.clear();
    blocks_seen.wipe();
    dirty_seen.wipe();
    is_late = false;
    for (size_t o = 0; o < operations.size(); ++o) {
      if (operations[o]->is_slow()) is_late = true;
      else price((int)o);
    }
    if (has_speeds) price_speeds();
    walk_dirty();
  }
  void finish() override {
    for (int i : changed_instances) instances[i].step->finish();
    if (!is_late) return;
    is_late = false;
    for (size_t o = 0; o < operations.size(); ++o)
      if (operations[o]->is_slow()) price((int)o);
    walk_dirty();
  }
  void keep() override {
    for (int i : changed_instances) instances[i].step->keep();
    for (auto& op : operations) op->keep();
    is_open = false;
    forget();
  }
  void undo() override {
    for (int i : changed_instances) instances[i].step->undo();
    layout.undo();
    for (auto& op : operations) op->undo();
    values.undo();
    waits.undo();
    now = before;
    is_open = false;
    is_late = false;
    dirty_blocks.clear();
  }
  // Blocks whose time the change may have changed, and what they took before.
  const Ints& blocks_changed() const { return dirty_blocks; }
  double block_before(size_t i) const { return blocks_before[i]; }

 private:
  template <class T> static std::unique_ptr<Operation> built(const Cost& cost, const Given& of) {
    return std::make_unique<T>(cost, of);
  }
  using Key = uint64_t;
  struct Known { Key key = 0; double seconds = 0.0; };
  // What a stage of a pipeline takes: passes of a full chunk, of the first and of the last one of
  // all, a hop to the next stage.
  struct Stage { double full[2] = {}, first[2] = {}, last[2] = {}, hop = 0.0; Key key = 0; };
  std::vector<Known> memory;
  std::vector<Ints> parts_of, axes_of;
  std::vector<Rows> stages_of;  // of the groups of each part
  Rows of_atom_in_blocks, atoms_of_block;
  Marks cells_seen, blocks_seen, dirty_seen, stages_seen, instances_seen;
  Ints instance_of;  // of each atom, -1: of none that counts
  Journal<double> values;
  Journal<Stage> waits;
  std::vector<Stage> of_block, of_replica;  // [block, stage], each at its slowest; [stage]
  Ints atoms, dirty_blocks, dirty_cells;
  Reals blocks_before, work, hop, slow, peak_s;
  Sums before;
  bool joins_nobody = true, is_open = false;

  double of_kinds() const {
    double sum = 0.0;
    for (const Kind& kind : kinds) sum += kind_s(kind);
    return sum;
  }
  void refine() {
    bool any = false;
    for (auto& op : operations) {
      if (!op->is_rough()) continue;
      any = true;
      op->refine();
      if (!is_open) op->kept.kept.clear();
    }
    if (any) now.own_s = of_kinds();
  }
  void forget() {
    values.kept.clear();
    waits.kept.clear();
    dirty_blocks.clear();
  }
  double largest(const Axis& axis, const Rows& groups, int cell) const {
    const Operation& op = *operations[axis.operation];
    double most = 0.0;
    for (int g : groups[cell]) {
      double sum = op.of(0, g);
      for (int s = 1; s < op.sizes; ++s) sum += op.of(s, g);
      most = std::max(most, sum);
    }
    return most;
  }
  double slowness(int cell, const Rows& of_cell) const {
    if (!has_speeds) return 1.0;
    double least = 1e300;
    for (int a : of_cell[cell])
      least = std::min(least, machine.speed[layout.site_of(a)]);
    return 1.0 / least;
  }
  void dirty(int cell) {
    if (dirty_seen.mark(cell)) dirty_cells.push_back(cell);
    const int block = cell / stages;
    if (!blocks_seen.mark(block)) return;
    dirty_blocks.push_back(block);
    blocks_before.push_back(block_s[block]);
  }
  void price(int o) {
    Operation& op = *operations[o];
    op.settle();
    if (op.is_of_kind) {
      if (!op.changed.empty()) now.own_s = of_kinds();
      return;
    }
    if (op.changed.empty()) return;
    for (int a : axes_of[o]) {
      Axis& axis = axes[a];
      cells_seen.wipe();
      for (int g : op.changed)
        for (int c : axis.of_block[g]) {
          if (!cells_seen.mark(c)) continue;
          const double slowest = largest(axis, axis.groups_of_block, c);
          if (slowest == axis.slowest[c]) continue;
          values.set(axis.slowest[c], slowest);
          dirty(c);
        }
    }
    bool differs = false;
    for (int part : parts_of[o]) {
      stages_seen.wipe();
      for (int g : op.changed)
        for (int p : stages_of[part][g]) {
          if (!stages_seen.mark(p)) continue;
          const int k = part * stages + p;
          if (const double most = peak(k); most != peak_s[k]) values.set(peak_s[k], most), differs = true;
        }
    }
    if (differs) now.exposed_s = sync.exposed(peak_s);
  }
  void price_speeds() {
    cells_seen.wipe();
    for (int atom : atoms)
      for (int c : of_atom_in_blocks[atom]) {
        if (!cells_seen.mark(c)) continue;
        const double slowest = slowness(c, atoms_of_block);
        if (slowest == slow[c]) continue;
        values.set(slow[c], slowest);
        dirty(c);
      }
  }
  void walk_dirty() {
    if (dirty_cells.empty()) return;
    for (int c : dirty_cells) waits.set(of_block[c], stage_of_block(c));
    dirty_cells.clear();
    dirty_seen.wipe();
    double most = now.longest_s;
    bool falls = false;
    for (int b : dirty_blocks) {
      const double seconds = walk(&of_block[(size_t)b * stages]);
      if (seconds == block_s[b]) continue;
      falls = falls || block_s[b] == now.longest_s;
      most = std::max(most, seconds);
      values.set(block_s[b], seconds);
    }
    now.longest_s = falls ? *std::max_element(block_s.begin(), block_s.end()) : most;
  }
  // Number k of the peaks: of each part, each stage.
  double peak(int k) const {
    const Sync::Part& part = sync.parts[k / stages];
    const Operation& op = *operations[part.operation];
    double most = 0.0;
    for (int g : part.groups[k % stages])
      most = std::max(most, op.of(part.size, g));
    return most;
  }
  Stage stage_of_block(int cell) const {
    return stage(cell % stages, slow[cell], [&](const Axis& axis) { return axis.slowest[cell]; });
  }
  // Stage p, so much slower than usual, where it waits for each axis.
  template <class Waits> Stage stage(int p, double slower, const Waits& waits_for) const {
    Stage found;
    double added[2] = {};
    for (const Axis& axis : axes) {
      const double seconds = waits_for(axis);
      if (axis.is_hop) {
        found.hop = axis.forward.at(seconds);
        continue;
      }
      added[0] += axis.forward.at(seconds);
      added[1] += axis.backward.at(seconds);
    }
    // Layers take no less than their launches, of so much of a full chunk; `end` comes besides.
    const auto set = [&](double* to, double pace, double share, double end) {
      for (int i = 0; i < 2; ++i)
        to[i] = std::max(compute[i] * slower * pace + share * added[i], compute[i] * slower * end + share * host[i]);
    };
    set(found.full, pace_full[p], 1.0, 0.0);
    if (p == 0) set(found.first, pace[0], share[0], end[0]);
    if (p == stages - 1) set(found.last, pace[1], share[1], end[1]);
    Key key = 0x2545f4914f6cdd1dull + p;
    for (double value : {found.full[0], found.full[1], found.first[0], found.first[1], found.last[0], found.last[1], found.hop}) {
      Key bits;
      std::memcpy(&bits, &value, sizeof bits);
      key = (key ^ bits) * 0x9fb21c651e98df25ull;
      key ^= key >> 32;
    }
    found.key = key;
    return found;
  }
  // The pipeline of such stages. Few of many that are asked for differ.
  double walk(const Stage* of) {
    Key key = 0;
    for (int p = 0; p < stages; ++p) key += of[p].key;
    Known& known = memory[key & (memory.size() - 1)];
    if (known.key == key && known.seconds > 0.0) return known.seconds;
    for (int p = 0; p < stages; ++p) {
      work[p] = of[p].full[0];
      work[stages + p] = of[p].full[1];
      hop[p] = of[p].hop;
    }
    std::copy_n(of[0].first, 2, &work[2 * stages]);
    std::copy_n(of[stages - 1].last, 2, &work[2 * stages + 2]);
    known = {key, pipeline.seconds(work.data(), hop.data())};
    return known.seconds;
  }
};

}  // namespace placer
