// The compiled module placer.solve.score._kernel: built piece by piece, each by name.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include "../../annealing/native/anneal.hpp"
#include "hops.hpp"
#include "step.hpp"

using namespace placer;

namespace {

using IntArray = Array<int>;

Pairs pairs(const IntArray& one, const IntArray& other) {
  Pairs found(one.size());
  for (size_t i = 0; i < one.size(); ++i) found[i] = {one.data()[i], other.data()[i]};
  return found;
}

// What walks of a cost go down on.
std::unique_ptr<Energy> energy(Cost& cost, int width, const Given& of) {
  if (auto* hops = dynamic_cast<Hops*>(&cost)) return std::make_unique<HopEnergy>(*hops, width);
  return std::make_unique<StepEnergy>(dynamic_cast<StepTime&>(cost), width, of.rows("blocks"), of.flag("has_experts"));
}

std::vector<Family> families(const nb::list& given) {
  std::vector<Family> found;
  for (nb::handle one : given) found.emplace_back(rows(one));
  return found;
}

}  // namespace

NB_MODULE(_kernel, module) {
  module.attr("sources") = SOURCES;
  nb::class_<Cost>(module, "Cost")
      .def("set_machine", [](Cost& self, nb::kwargs of) { self.set_machine({of}); })
      .def("load", [](Cost& self, IntArray slots) { self.load(numbers(slots)); })
      .def("change",
           [](Cost& self, IntArray one, IntArray other) {
             self.change(pairs(one, other));
             self.finish();
             return self.value();
           })
      .def("keep", &Cost::keep)
      .def("undo", &Cost::undo)
      .def_prop_ro("value", &Cost::value)
      .def_prop_ro("slots", [](const Cost& self) { return array(self.layout.slot_of); });

  nb::class_<Hops, Cost>(module, "Hops").def(nb::init<>()).def("set_edges", [](Hops& self, nb::kwargs of) {
    self.set_edges({of});
  });

  nb::class_<StepTime, Cost>(module, "StepTime")
      .def(nb::init<>())
      .def("add", [](StepTime& self, const std::string& sort, nb::kwargs of) { return self.add(sort, {of}); })
      .def("add_axis", [](StepTime& self, nb::kwargs of) { self.add_axis({of}); })
      .def("add_kind", [](StepTime& self, Ints operations, double times, double hidden,
                          double by_roles) { self.kinds.push_back({operations, times, hidden, by_roles}); })
      .def("set_sync", [](StepTime& self, nb::kwargs of) { self.sync.set({of}); })
      .def("add_sync", [](StepTime& self, int operation, int size, nb::kwargs of) { self.sync.add(operation, size, {of}); })
      .def(
          "add_instance",
          [](StepTime& self, StepTime& step, double steps, IntArray atoms) {
            self.instances.push_back({&step, steps, numbers(atoms)});
          },
          nb::keep_alive<1, 2>())
      .def("set_least_roles", [](StepTime& self, double seconds) { self.least_roles_s = seconds; })
      .def("set_stages", [](StepTime& self, nb::kwargs of) { self.set_stages({of}); })
      .def_prop_ro("calls_scorer", &StepTime::calls_scorer);

  nb::class_<Annealer>(module, "Annealer")
      .def(
          "__init__",
          [](Annealer* self, Cost& cost, int width, nb::list sets, nb::kwargs of) {
            new (self) Annealer(energy(cost, width, {of}), width, families(sets));
          },
          nb::keep_alive<1, 2>())
      .def("begin_walk", &Annealer::begin_walk)
      .def("set_partners", [](Annealer& self, nb::handle partners) { self.search.partners = rows(partners); })
      .def("set_home",
           [](Annealer& self, IntArray slot, IntArray ranks, IntArray affected) {
             Home& home = self.search.home;
             home.affected = numbers(affected);
             home.ranks = numbers(ranks);
             home.cell.clear();
             for (size_t u = 0; u < slot.size(); ++u)
               home.cell.push_back(slot.data()[u] < 0 ? -1 : self.search.cell(slot.data()[u]));
           })
      .def_prop_rw(
          "price", [](const Annealer& self) { return self.search.home.price; },
          [](Annealer& self, double price) { self.search.home.price = price; })
      .def("load", [](Annealer& self, IntArray slots) { self.load(numbers(slots)); })
      .def("set_runs", [](Annealer& self, nb::kwargs of) { self.search.runs.set({of}); })
      .def("add_tie", [](Annealer& self, nb::kwargs of) { self.search.fence.add_tie({of}); })
      .def("set_pins", [](Annealer& self, nb::kwargs of) { self.search.fence.set_pins({of}); })
      .def("add_limit", [](Annealer& self, nb::kwargs of) { self.search.fence.add_limit({of}); })
      .def_prop_ro("broken", [](const Annealer& self) { return self.broken; })
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
           [](Annealer& self, int64_t moves, double share, double hot, double cold) {
             const Schedule schedule{hot, cold};
             nb::gil_scoped_release free;
             self.walk(moves, share, schedule);
           })
      .def_prop_ro("best", [](const Annealer& self) { return self.best; })
      .def_prop_ro("best_slots", [](const Annealer& self) { return array(self.best_slots); })
      .def_prop_ro("moves", [](const Annealer& self) {
        nb::list found;
        for (size_t i = 0; i < self.rows().size(); ++i)
          found.append(nb::make_tuple(self.rows()[i].name, self.helped[i], self.tried[i]));
        return found;
      });
}
