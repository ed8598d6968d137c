// The compiled module placer.solve.score._kernel: built array by array, then asked.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>
#include "../../annealing/native/anneal.hpp"
#include "hops.hpp"
#include "step.hpp"

namespace nb = nanobind;
using namespace placer;

namespace {

using IntArray = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using RealArray = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Ints ints(const IntArray& a) { return Ints(a.data(), a.data() + a.size()); }
Reals reals(const RealArray& a) { return Reals(a.data(), a.data() + a.size()); }

// Rows of a two-dimensional question come one after the other, with where each starts.
Rows rows(const IntArray& start, const IntArray& entry) {
  Rows found;
  found.start = ints(start);
  found.entry = ints(entry);
  return found;
}

nb::object array(const Reals& values) {
  auto* copy = new Reals(values);
  nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<Reals*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<1>>(copy->data(), {copy->size()}, owner));
}
nb::object array(const Ints& values) {
  auto* copy = new Ints(values);
  nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<Ints*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>(copy->data(), {copy->size()}, owner));
}

std::function<void(const Ints&, Reals&)> asker(nb::callable ask) {
  return [ask](const Ints& slots, Reals& seconds) {
    nb::gil_scoped_acquire gil;
    auto answer = nb::cast<RealArray>(ask(array(slots)));
    std::copy_n(answer.data(), std::min(answer.size(), seconds.size()), seconds.data());
  };
}

template <class T> void set_machine(T& self, nb::list children, RealArray bandwidth,
                                    RealArray latency, RealArray detour, nb::list capacity,
                                    int scale_up, IntArray rail, RealArray factor, RealArray speed,
                                    IntArray site_of_slot) {
  Machine& m = self.machine;
  m.tiers = (int)bandwidth.size();
  m.scale_up = scale_up;
  for (auto one : children) m.child.push_back(ints(nb::cast<IntArray>(one)));
  for (auto one : capacity) m.capacity.push_back(reals(nb::cast<RealArray>(one)));
  m.bandwidth = reals(bandwidth);
  m.latency = reals(latency);
  m.detour = reals(detour);
  m.rail = ints(rail);
  m.factor = reals(factor);
  m.speed = reals(speed);
  m.rails = 1 + (m.rail.empty() ? 0 : *std::max_element(m.rail.begin(), m.rail.end()));
  for (double d : m.detour) m.has_rails |= d > 0;
  Layout& at = self.layout;
  at.site = ints(site_of_slot);
  at.atom_at.assign(at.site.size(), -1);
  at.first.resize(m.tiers);
  at.end.resize(m.tiers);
  for (int t = 0; t < m.tiers; ++t) {
    int count = 0;
    for (int c : m.child[t]) count = std::max(count, c + 1);
    at.first[t].assign(count, 0);
    at.end[t].assign(count, 0);
    for (int slot = (int)at.site.size(); slot-- > 0;) {
      const int c = m.child[t][at.site[slot]];
      if (!at.end[t][c]) at.end[t][c] = slot + 1;
      at.first[t][c] = slot;
    }
  }
}

template <class T> int add(StepTime& self, std::unique_ptr<T> op, int groups, int sizes,
                           const IntArray& start, const IntArray& entry) {
  op->machine = &self.machine;
  op->layout = &self.layout;
  op->groups = groups;
  op->sizes = sizes;
  op->of_atom = rows(start, entry);
  op->start();
  self.operations.push_back(std::move(op));
  return (int)self.operations.size() - 1;
}

void set_rings(Rings& op, const IntArray& first, const IntArray& member, const IntArray& weight,
               const IntArray& lanes, int members, const RealArray& buffer, double moved,
               const RealArray& steps_outside, const RealArray& steps_inside, bool is_even, const IntArray& thin) {
  op.member = rows(first, member);
  op.weight = rows(first, weight);
  op.lanes = ints(lanes);
  op.members = members;
  op.buffer = reals(buffer);
  op.moved = moved;
  op.steps_outside = reals(steps_outside);
  op.steps_inside = reals(steps_inside);
  op.is_even = is_even;
  op.thin = ints(thin);
}

// One that is priced anew after every change.
template <class T> int add_whole(StepTime& self, std::unique_ptr<T> op, int groups) {
  op->machine = &self.machine;
  op->layout = &self.layout;
  op->groups = groups;
  op->of_atom.start.assign(self.layout.site.size() + 1, 0);
  op->start();
  self.operations.push_back(std::move(op));
  return (int)self.operations.size() - 1;
}

Pairs pairs(const IntArray& one, const IntArray& other) {
  Pairs found(one.size());
  for (size_t i = 0; i < one.size(); ++i) found[i] = {one.data()[i], other.data()[i]};
  return found;
}

std::vector<Step> steps(const IntArray& flat) {
  std::vector<Step> found;
  for (size_t i = 0; i + 4 < flat.size(); i += 5) {
    const int32_t* s = flat.data() + i;
    found.push_back({s[0], s[1], s[2], s[3], s[4]});
  }
  return found;
}

bool asks(const StepTime& step) {
  for (const auto& op : step.operations)
    if (dynamic_cast<const Asked*>(op.get())) return true;
  for (const Instance& one : step.instances)
    if (asks(*one.step)) return true;
  return bool(step.ask_exposed);
}

std::vector<Family> sets(const nb::list& families) {
  std::vector<Family> found;
  for (auto one : families) {
    auto parts = nb::cast<nb::tuple>(one);
    found.push_back({ints(nb::cast<IntArray>(parts[0])),
                     rows(nb::cast<IntArray>(parts[1]), nb::cast<IntArray>(parts[2]))});
  }
  return found;
}

}  // namespace

NB_MODULE(_kernel, module) {
  nb::class_<StepTime>(module, "StepTime")
      .def(nb::init<>())
      .def("set_machine", &set_machine<StepTime>)
      .def("add_exchange",
           [](StepTime& self, IntArray start, IntArray groups_of, IntArray first, IntArray member,
              IntArray weight, IntArray lanes, int members, RealArray share, RealArray sent,
              double sent_inside) {
             auto op = std::make_unique<Exchange>();
             op->member = rows(first, member);
             op->weight = rows(first, weight);
             op->lanes = ints(lanes);
             op->members = members;
             op->share = reals(share);
             op->sent = reals(sent);
             op->sent_inside = sent_inside;
             const int groups = op->member.count(), sizes = (int)op->share.size();
             return add(self, std::move(op), groups, sizes, start, groups_of);
           })
      .def("add_messages",
           [](StepTime& self, IntArray start, IntArray groups_of, IntArray sender, IntArray receiver,
              IntArray lanes, double size, IntArray thin) {
             auto op = std::make_unique<Messages>();
             op->sender = ints(sender);
             op->receiver = ints(receiver);
             op->lanes = ints(lanes);
             op->size = size;
             op->thin = ints(thin);
             const int groups = (int)op->sender.size();
             return add(self, std::move(op), groups, 1, start, groups_of);
           })
      .def("add_rings",
           [](StepTime& self, IntArray start, IntArray groups_of, IntArray first, IntArray member,
              IntArray weight, IntArray lanes, int members, RealArray buffer, double moved,
              RealArray steps_outside, RealArray steps_inside, bool is_even, IntArray thin) {
             auto op = std::make_unique<Rings>();
             set_rings(*op, first, member, weight, lanes, members, buffer, moved, steps_outside, steps_inside,
                       is_even, thin);
             const int groups = op->member.count(), sizes = (int)op->buffer.size();
             return add(self, std::move(op), groups, sizes, start, groups_of);
           })
      .def("add_all_reduces",
           [](StepTime& self, IntArray start, IntArray groups_of, IntArray first, IntArray member,
              IntArray weight, IntArray lanes, int members, RealArray buffer, double moved,
              RealArray steps_outside, RealArray steps_inside, bool is_even, IntArray thin,
              std::vector<bool> ways, RealArray tree_buffers, RealArray buffers, RealArray shares,
              RealArray switched, int heads) {
             auto op = std::make_unique<AllReduces>();
             set_rings(*op, first, member, weight, lanes, members, buffer, moved, steps_outside, steps_inside,
                       is_even, thin);
             op->by_ring = ways[0];
             op->by_tree = ways[1];
             op->by_switch = ways[2];
             op->is_tuned = ways[3];
             op->in_racks = ways[4];
             op->tree_buffers = reals(tree_buffers);
             op->buffers = reals(buffers);
             op->inside_share = shares.data()[0];
             op->between_share = shares.data()[1];
             op->switch_steps = shares.data()[2];
             op->switched = reals(switched);
             op->heads = heads;
             const int groups = op->member.count(), sizes = (int)op->buffer.size();
             return add(self, std::move(op), groups, sizes, start, groups_of);
           })
      .def("add_inside",
           [](StepTime& self, IntArray start, IntArray groups_of, IntArray atom, RealArray on_site) {
             auto op = std::make_unique<Inside>();
             op->atom = ints(atom);
             op->on_site = reals(on_site);
             const int groups = (int)op->atom.size();
             return add(self, std::move(op), groups, 1, start, groups_of);
           })
      .def("add_flows",
           [](StepTime& self, IntArray from, IntArray to, IntArray sender, IntArray receiver, RealArray bytes,
              double pair_share, double fixed) {
             auto op = std::make_unique<Flows>();
             for (size_t i = 0; i < from.size(); ++i)
               op->flows.push_back({from.data()[i], to.data()[i], sender.data()[i], receiver.data()[i],
                                    bytes.data()[i]});
             op->pair_share = pair_share;
             op->fixed = fixed;
             return add_whole(self, std::move(op), 1);
           })
      .def("add_relay",
           [](StepTime& self, IntArray first, IntArray member, double size) {
             auto op = std::make_unique<Relay>();
             op->member = rows(first, member);
             op->size = size;
             const int groups = op->member.count();
             return add_whole(self, std::move(op), groups);
           })
      .def("add_asked",
           [](StepTime& self, IntArray start, IntArray groups_of, int groups, int sizes,
              nb::callable ask) {
             auto op = std::make_unique<Asked>();
             op->ask = asker(ask);
             return add(self, std::move(op), groups, sizes, start, groups_of);
           })
      .def("add_axis",
           [](StepTime& self, int operation, IntArray cells_start, IntArray cells,
              IntArray groups_start, IntArray groups, RealArray forward, RealArray forward_start,
              RealArray backward, RealArray backward_start, bool is_hop) {
             Axis axis;
             axis.operation = operation;
             axis.cells = rows(cells_start, cells);
             axis.groups = rows(groups_start, groups);
             axis.forward = {reals(forward), reals(forward_start)};
             axis.backward = {reals(backward), reals(backward_start)};
             axis.is_hop = is_hop;
             self.axes.push_back(axis);
           })
      .def("add_peak",
           [](StepTime& self, int operation, int size, IntArray groups) {
             self.peaks.push_back({operation, size, ints(groups)});
             return (int)self.peaks.size() - 1;
           })
      .def("add_kind",
           [](StepTime& self, std::vector<int> operations, double times, double hidden, double by_roles) {
             self.kinds.push_back({operations, times, hidden, by_roles});
           })
      .def(
          "add_instance",
          [](StepTime& self, StepTime& step, double steps, IntArray atoms) {
            self.instances.push_back({&step, steps, ints(atoms)});
          },
          nb::keep_alive<1, 2>())
      .def("set_least_roles", [](StepTime& self, double seconds) { self.least_roles_s = seconds; })
      .def("add_window",
           [](StepTime& self, double weight, std::vector<Ints> peaks, std::vector<Reals> times,
              Reals hidden, int seen) {
             self.windows.push_back({weight, peaks, times, hidden, seen});
           })
      .def("ask_exposed",
           [](StepTime& self, nb::callable ask) {
             self.ask_exposed = [ask](const Reals& peaks) {
               nb::gil_scoped_acquire gil;
               return nb::cast<double>(ask(array(peaks)));
             };
           })
      .def("set_pipeline",
           [](StepTime& self, int stages, int group, int repetitions, bool overlap, IntArray head,
              IntArray middle, IntArray tail, IntArray open, int keys) {
             Pipeline& p = self.pipeline;
             p.stages = stages;
             p.group = group;
             p.repetitions = repetitions;
             p.overlap = overlap;
             p.head = steps(head);
             p.middle = steps(middle);
             p.tail = steps(tail);
             p.open = ints(open);
             p.moved.assign(p.open.size(), 0.0);
             p.arrived.assign(keys, 0.0);
           })
      .def("set_replicas",
           [](StepTime& self, int replicas, int stages, RealArray numbers, RealArray pace_full,
              IntArray start, IntArray cells, IntArray atoms_start, IntArray atoms, bool has_speeds,
              IntArray block, IntArray block_start, IntArray of_block) {
             self.replicas = replicas;
             self.stages = stages;
             const double* n = numbers.data();
             self.fixed = n[0];
             self.work_forward = n[1];
             self.work_backward = n[2];
             self.share_first = n[3];
             self.share_last = n[4];
             self.pace_first = n[5];
             self.pace_last = n[6];
             self.host_forward = n[7];
             self.host_backward = n[8];
             self.end_first = n[9];
             self.end_last = n[10];
             self.pace_full = reals(pace_full);
             self.cells_of_atom = rows(start, cells);
             self.atoms_of_cell = rows(atoms_start, atoms);
             self.has_speeds = has_speeds;
             self.block_of_replica = ints(block);
             self.replicas_of_block = rows(block_start, of_block);
             self.start();
           })
      .def("load", [](StepTime& self, IntArray slots) { self.load(ints(slots)); })
      .def("change",
           [](StepTime& self, IntArray one, IntArray other) {
             self.change(pairs(one, other));
             self.finish();
             return self.value();
           })
      .def("keep", &StepTime::keep)
      .def("undo", &StepTime::undo)
      .def_prop_ro("value", &StepTime::value)
      .def_prop_ro("pipeline_s", &StepTime::pipeline_s)
      .def_prop_ro("asks",
&asks)
      .def_prop_ro("exposed_s", [](const StepTime& self) { return self.exposed_s; })
      .def_prop_ro("slots", [](const StepTime& self) { return array(self.layout.slot_of); })
      .def("pressure", [](StepTime& self) { return array(self.pressure()); });

  nb::class_<Annealer>(module, "Annealer")
      .def(
          "__init__",
          [](Annealer* self, StepTime& step, int width, nb::list families, IntArray start,
             IntArray of_block, bool has_experts) {
            auto energy = std::make_unique<StepEnergy>(step, width, rows(start, of_block), has_experts);
            new (self) Annealer(std::move(energy), width, sets(families));
          },
          nb::keep_alive<1, 2>())
      .def(
          "__init__",
          [](Annealer* self, Hops& hops, int width, nb::list families) {
            new (self) Annealer(std::make_unique<HopEnergy>(hops, width), width, sets(families));
          },
          nb::keep_alive<1, 2>())
      .def("tie",
           [](Annealer& self, int level, nb::list sets_of_one) {
             self.search.tied.push_back({level, sets(sets_of_one)[0]});
           })
      .def("seed", [](Annealer& self, uint64_t seed) { self.search.random = Random(seed); })
      .def("set_partners",
           [](Annealer& self, IntArray start, IntArray partners) { self.search.partners = rows(start, partners); })
      .def("set_home",
           [](Annealer& self, IntArray slot, IntArray ranks, IntArray affected) {
             Home& home = self.search.home;
             home.affected = ints(affected);
             home.ranks = ints(ranks);
             home.cell.clear();
             for (size_t u = 0; u < slot.size(); ++u)
               home.cell.push_back(slot.data()[u] < 0 ? -1 : self.search.cell(slot.data()[u]));
           })
      .def_prop_rw(
          "price", [](const Annealer& self) { return self.search.home.price; },
          [](Annealer& self, double price) { self.search.home.price = price; })
      .def("load", [](Annealer& self, IntArray slots) { self.load(ints(slots)); })
      .def("set_runs",
           [](Annealer& self, IntArray room, IntArray host, IntArray first, IntArray kind,
              IntArray kind_of_slot, IntArray node_of_slot, IntArray start, IntArray slots,
              std::vector<int> sizes) {
             Runs& runs = self.search.runs;
             runs.room = ints(room);
             runs.host = ints(host);
             runs.first = ints(first);
             runs.kind = ints(kind);
             runs.kind_of_slot = ints(kind_of_slot);
             runs.node_of_slot = ints(node_of_slot);
             runs.slots_of_kind = rows(start, slots);
             runs.sizes = sizes;
             for (size_t i = 0; i + 1 < runs.host.size(); ++i) runs.has_hosts |= runs.host[i] == runs.host[i + 1];
           })
      .def("add_fence",
           [](Annealer& self, IntArray of_start, IntArray groups_of, IntArray start, IntArray units,
              IntArray domain) {
             self.search.runs.fences.push_back({rows(of_start, groups_of), rows(start, units), ints(domain)});
           })
      .def("set_pins",
           [](Annealer& self, IntArray pin, IntArray open, int places) {
             self.search.fence.pin_of_unit = ints(pin);
             self.search.fence.open.assign(open.data(), open.data() + open.size());
             self.search.fence.places = places;
           })
      .def("add_limit",
           [](Annealer& self, int columns, int width, IntArray of_unit, IntArray of_place, IntArray most) {
             self.search.fence.limits.push_back({columns, width, ints(of_unit), ints(of_place), ints(most), {}, {}});
           })
      .def_prop_ro("keeps_rules", [](const Annealer& self) { return self.keeps_rules; })
      .def("load_runs",
           [](Annealer& self, IntArray node, IntArray length) {
             std::vector<Run> found(node.size());
             for (size_t i = 0; i < node.size(); ++i) found[i] = {node.data()[i], length.data()[i]};
             self.load_runs(found);
           })
      .def_prop_ro("best_runs",
                   [](const Annealer& self) {
                     Ints found;
                     for (const Run& run : self.best_runs) found.push_back(run.node), found.push_back(run.length);
                     return array(found);
                   })
      .def("usual_change",
           [](Annealer& self, int tries, double hot) {
             nb::gil_scoped_release free;
             return self.usual_change(tries, {hot, hot});
           })
      .def("walk",
           [](Annealer& self, int64_t moves, double begin, double end, double hot, double cold) {
             const Schedule schedule{hot, cold};
             nb::gil_scoped_release free;
             self.walk(moves, begin, end, schedule);
           })
      .def_prop_ro("best", [](const Annealer& self) { return self.best; })
      .def_prop_ro("best_slots", [](const Annealer& self) { return array(self.best_slots); })
      .def_prop_ro("moves", [](const Annealer& self) {
        nb::list found;
        for (size_t i = 0; i < self.rows().size(); ++i)
          found.append(nb::make_tuple(self.rows()[i].name, self.helped[i], self.tried[i]));
        return found;
      });

  nb::class_<Hops>(module, "Hops")
      .def(nb::init<>())
      .def("set_machine", &set_machine<Hops>)
      .def("set_edges",
           [](Hops& self, RealArray distance, RealArray weights, std::vector<int64_t> inside, IntArray first,
              IntArray other, IntArray times, IntArray axis) {
             self.distance = reals(distance);
             self.weights = reals(weights);
             self.inside = inside;
             self.first = ints(first);
             for (size_t e = 0; e < other.size(); ++e)
               self.edges.push_back({other.data()[e], times.data()[e], axis.data()[e]});
           })
      .def("load", [](Hops& self, IntArray slots) { self.load(ints(slots)); })
      .def("change",
           [](Hops& self, IntArray one, IntArray other) {
             self.change(pairs(one, other));
             return self.value();
           })
      .def("keep", [](Hops&) {})
      .def("undo", &Hops::undo)
      .def("pressure", [](Hops& self) { return array(self.pressure()); })
      .def_prop_ro("value", &Hops::value)
      .def_prop_ro("slots", [](const Hops& self) { return array(self.layout.slot_of); });
}
