// The step of a placement, kept up to date change by change.
//
// step = slowest replica's pipeline + what rows of windows leave exposed + what is fixed.
// A stage of a replica waits for the slowest of its groups of each axis.
#pragma once
#include <cmath>
#include <cstring>
#include <memory>
#include "asked.hpp"
#include "exchange.hpp"
#include "messages.hpp"
#include "pipeline.hpp"
#include "rings.hpp"

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
  Rows cells, groups;       // cells of each group, groups of each cell
  Lines forward, backward;  // of the slowest group, added to a full chunk
  bool is_hop = false;      // a message to the next stage
  Reals slowest;            // of each cell
};

// Largest seconds of some groups of an operation, all of one stage or all there are.
struct Peak {
  int operation, size;
  Ints groups;
};

// What windows of compute leave exposed: weight x the largest of `floor` and the entries,
// each a sum of peaks less what hides it.
struct Window {
  double weight = 1.0, floor = 0.0;
  std::vector<Ints> peaks;
  std::vector<Reals> times;
  Reals hidden;
};

struct StepTime {
  StepTime() = default;
  StepTime(const StepTime&) = delete;  // operations point at its machine and layout

  Machine machine;
  Layout layout;
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<Axis> axes;
  std::vector<Peak> peaks;
  std::vector<Window> windows;
  std::function<double(const Reals&)> ask_exposed;  // in place of windows
  Pipeline pipeline;
  int replicas = 0, stages = 0;
  double fixed = 0.0;
  double work_forward = 0, work_backward = 0, share_first = 1, share_last = 1;
  double pace_first = 1, pace_last = 1;
  Reals pace_full;                       // of a stage
  Rows cells_of_atom;                    // cells of the ranks of each atom
  Rows atoms_of_cell;
  bool has_speeds = false;
  Ints block_of_replica;                 // replicas that share groups wait for each other
  Rows replicas_of_block;

  // State
  Reals replica_s, block_s, slowness, peak_s;
  double exposed_s = 0.0, pipeline_s = 0.0;
  double traffic = 0.0, background = 0.0;  // of all groups of axes, and of all others
  int ring_groups = 0;
  bool is_late = false;                  // slow operations are not priced yet

  double value() const { return pipeline_s + exposed_s + fixed; }
  bool has_slow() const {
    for (auto& op : operations) if (op->is_slow()) return true;
    return false;
  }

  void start() {
    const int cells = replicas * stages;
    replica_s.assign(replicas, 0.0);
    keys.assign(replicas, 0);
    slowness.assign(cells, 1.0);
    cell_keys.assign((axes.size() + 1) * (size_t)cells, 0);
    peak_s.assign(peaks.size(), 0.0);
    block_s.assign(replicas_of_block.count(), 0.0);
    cells_seen.resize(cells);
    replicas_seen.resize(replicas);
    blocks_seen.resize(block_s.size());
    memory.assign(size_t(1) << 16, Known{});
    peaks_of.assign(operations.size(), {});
    for (size_t k = 0; k < peaks.size(); ++k) peaks_of[peaks[k].operation].push_back((int)k);
    axes_of.assign(operations.size(), {});
    for (size_t a = 0; a < axes.size(); ++a) {
      axes_of[axes[a].operation].push_back((int)a);
      axes[a].slowest.assign(cells, 0.0);
    }
    work.resize(2 * stages + 4);
    hop.resize(stages);
  }

  void load(const Ints& slots) {
    layout.load(slots);
    for (auto& op : operations) op->rebuild();
    traffic = background = 0.0;
    ring_groups = 0;
    for (size_t o = 0; o < operations.size(); ++o) {
      const bool waits = !axes_of[o].empty();
      if (!waits) ring_groups += operations[o]->groups;
      for (double s : operations[o]->mean) (waits ? traffic : background) += s;
    }
    const int cells = replicas * stages;
    std::fill(keys.begin(), keys.end(), 0);
    std::fill(cell_keys.begin(), cell_keys.end(), 0);
    for (size_t a = 0; a < axes.size(); ++a)
      for (int c = 0; c < cells; ++c) {
        axes[a].slowest[c] = slowest(axes[a], c);
        rekey((int)a, c, axes[a].slowest[c]);
      }
    for (int c = 0; c < cells; ++c) {
      slowness[c] = slowness_of(c);
      rekey((int)axes.size(), c, slowness[c]);
    }
    for (int d = 0; d < replicas; ++d) replica_s[d] = walk(d);
    for (size_t b = 0; b < block_s.size(); ++b) block_s[b] = slowest_of((int)b);
    for (size_t k = 0; k < peaks.size(); ++k) peak_s[k] = largest(peaks[k]);
    exposed_s = exposed();
    pipeline_s = *std::max_element(replica_s.begin(), replica_s.end());
    forget();
  }

  // A change: pairs of slots whose atoms change places, one pair after the other. Prices
  // the pipeline; `finish` prices the rest. Then `keep` or `undo`.
  void change(const std::vector<std::pair<int, int>>& pairs) {
    made = pairs;
    atoms.clear();
    for (const auto& [one, other] : pairs) {
      if (layout.atom_at[one] >= 0) atoms.push_back(layout.atom_at[one]);
      if (layout.atom_at[other] >= 0) atoms.push_back(layout.atom_at[other]);
    }
    for (auto& op : operations) op->touch(atoms);
    for (const auto& [one, other] : pairs) layout.exchange(one, other);
    for (auto& op : operations) op->moved();
    before_pipeline = pipeline_s;
    before_exposed = exposed_s;
    before_traffic = traffic;
    before_background = background;
    dirty_blocks.clear();
    blocks_before.clear();
    dirty_replicas.clear();
    replicas_seen.wipe();
    blocks_seen.wipe();
    is_late = false;
    for (size_t o = 0; o < operations.size(); ++o) {
      if (operations[o]->is_slow()) is_late = true;
      else price((int)o);
    }
    if (has_speeds) speeds();
    walk_dirty();
  }
  // What `change` left out.
  void finish() {
    if (!is_late) return;
    is_late = false;
    for (size_t o = 0; o < operations.size(); ++o)
      if (operations[o]->is_slow()) price((int)o);
    walk_dirty();
  }
  void keep() {
    for (auto& op : operations) op->keep();
    forget();
  }
  void undo() {
    for (size_t i = made.size(); i-- > 0;) layout.exchange(made[i].first, made[i].second);
    for (auto& op : operations) op->undo();
    values.undo();
    hashes.undo();
    pipeline_s = before_pipeline;
    exposed_s = before_exposed;
    traffic = before_traffic;
    background = before_background;
    is_late = false;
    dirty_blocks.clear();
  }
  // Blocks whose time the change may have changed, and what they took before.
  const Ints& blocks_changed() const { return dirty_blocks; }
  double block_before(size_t i) const { return blocks_before[i]; }

 private:
  using Key = uint64_t;
  struct Known { Key key = 0; double seconds = 0.0; };
  std::vector<Known> memory;
  std::vector<Key> keys, cell_keys;
  std::vector<Ints> peaks_of, axes_of;
  Marks cells_seen, replicas_seen, blocks_seen;
  Journal<double> values;
  Journal<Key> hashes;
  Ints atoms, dirty_replicas, dirty_blocks;
  Reals blocks_before, work, hop;
  std::vector<std::pair<int, int>> made;
  double before_pipeline = 0, before_exposed = 0, before_traffic = 0, before_background = 0;

  void forget() {
    values.kept.clear();
    hashes.kept.clear();
    dirty_blocks.clear();
  }
  static Key mix(Key x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  // A replica's key tells its times: the keys of its cells together.
  void rekey(int axis, int cell, double value) {
    Key bits;
    std::memcpy(&bits, &value, sizeof bits);
    const Key fresh = mix(bits ^ mix((Key)axis * stages + cell % stages + 1));
    Key& place = cell_keys[(size_t)axis * replicas * stages + cell];
    Key& whole = keys[cell / stages];
    hashes.set(whole, whole ^ place ^ fresh);
    hashes.set(place, fresh);
  }
  double slowest(const Axis& axis, int cell) const {
    const Operation& op = *operations[axis.operation];
    double most = 0.0;
    for (const int* g = axis.groups.begin(cell); g != axis.groups.end(cell); ++g) {
      double sum = 0.0;
      for (int s = 0; s < op.sizes; ++s) sum += op.of(s, *g);
      most = std::max(most, sum);
    }
    return most;
  }
  double slowness_of(int cell) const {
    if (!has_speeds) return 1.0;
    double least = 1e300;
    for (const int* a = atoms_of_cell.begin(cell); a != atoms_of_cell.end(cell); ++a)
      least = std::min(least, machine.speed[layout.site_of(*a)]);
    return 1.0 / least;
  }
  void dirty(int replica) {
    if (replicas_seen.mark(replica)) dirty_replicas.push_back(replica);
  }
  void price(int o) {
    Operation& op = *operations[o];
    const size_t noted = op.kept.kept.size();
    op.settle();
    double& mean = axes_of[o].empty() ? background : traffic;
    for (size_t i = noted; i < op.kept.kept.size(); ++i) {
      double* place = op.kept.kept[i].place;
      if (place >= op.mean.data() && place < op.mean.data() + op.mean.size())
        mean += *place - op.kept.kept[i].value;
    }
    if (op.changed.empty()) return;
    for (int a : axes_of[o]) {
      Axis& axis = axes[a];
      cells_seen.wipe();
      for (int g : op.changed)
        for (const int* c = axis.cells.begin(g); c != axis.cells.end(g); ++c) {
          if (!cells_seen.mark(*c)) continue;
          const double now = slowest(axis, *c);
          if (now == axis.slowest[*c]) continue;
          values.set(axis.slowest[*c], now);
          rekey(a, *c, now);
          dirty(*c / stages);
        }
    }
    if (!peaks_of[o].empty()) {
      bool differs = false;
      for (int k : peaks_of[o]) {
        const double now = largest(peaks[k]);
        if (now != peak_s[k]) values.set(peak_s[k], now), differs = true;
      }
      if (differs) exposed_s = exposed();
    }
  }
  void speeds() {
    cells_seen.wipe();
    for (int atom : atoms)
      for (const int* c = cells_of_atom.begin(atom); c != cells_of_atom.end(atom); ++c) {
        if (!cells_seen.mark(*c)) continue;
        const double now = slowness_of(*c);
        if (now == slowness[*c]) continue;
        values.set(slowness[*c], now);
        rekey((int)axes.size(), *c, now);
        dirty(*c / stages);
      }
  }
  void walk_dirty() {
    for (int d : dirty_replicas) {
      const double now = walk(d);
      if (now == replica_s[d]) continue;
      values.set(replica_s[d], now);
      const int b = block_of_replica[d];
      if (!blocks_seen.mark(b)) continue;
      dirty_blocks.push_back(b);
      blocks_before.push_back(block_s[b]);
    }
    dirty_replicas.clear();
    replicas_seen.wipe();
    if (dirty_blocks.empty()) return;
    for (int b : dirty_blocks) values.set(block_s[b], slowest_of(b));
    pipeline_s = *std::max_element(block_s.begin(), block_s.end());
  }
  double slowest_of(int block) const {
    double most = 0.0;
    for (const int* d = replicas_of_block.begin(block); d != replicas_of_block.end(block); ++d)
      most = std::max(most, replica_s[*d]);
    return most;
  }
  double largest(const Peak& peak) const {
    const Operation& op = *operations[peak.operation];
    double most = 0.0;
    for (int g : peak.groups) most = std::max(most, op.of(peak.size, g));
    return most;
  }
  double exposed() const {
    if (ask_exposed) return ask_exposed(peak_s);
    double sum = 0.0;
    for (const Window& w : windows) {
      double most = w.floor;
      for (size_t i = 0; i < w.hidden.size(); ++i) {
        double entry = -w.hidden[i];
        for (size_t j = 0; j < w.peaks[i].size(); ++j) entry += w.times[i][j] * peak_s[w.peaks[i][j]];
        most = std::max(most, entry);
      }
      sum += w.weight * most;
    }
    return sum;
  }
  double walk(int replica) {
    const Key key = keys[replica];
    Known& known = memory[key & (memory.size() - 1)];
    if (known.key == key && known.seconds > 0.0) return known.seconds;
    for (int p = 0; p < stages; ++p) {
      const int cell = replica * stages + p;
      double forward = 0.0, backward = 0.0;
      hop[p] = 0.0;
      for (const Axis& axis : axes) {
        if (axis.is_hop) {
          hop[p] = axis.slowest[cell];
          continue;
        }
        forward += axis.forward.at(axis.slowest[cell]);
        backward += axis.backward.at(axis.slowest[cell]);
      }
      const double slow = slowness[cell];
      work[p] = work_forward * pace_full[p] * slow + forward;
      work[stages + p] = work_backward * pace_full[p] * slow + backward;
      if (p == 0) {
        work[2 * stages] = work_forward * slow * pace_first + share_first * forward;
        work[2 * stages + 1] = work_backward * slow * pace_first + share_first * backward;
      }
      if (p == stages - 1) {
        work[2 * stages + 2] = work_forward * slow * pace_last + share_last * forward;
        work[2 * stages + 3] = work_backward * slow * pace_last + share_last * backward;
      }
    }
    known = {key, pipeline.seconds(work.data(), hop.data())};
    return known.seconds;
  }
};

}  // namespace placer
