// What Python gives by name: numbers, arrays, and rows of placer.solve.score.groups.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include "layout.hpp"

namespace placer {

namespace nb = nanobind;

template <class T> using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T> std::vector<T> numbers(const Array<T>& given) { return {given.data(), given.data() + given.size()}; }
template <class T> std::vector<T> numbers(nb::handle given) { return numbers(nb::cast<Array<T>>(given)); }
inline Rows rows(nb::handle given) { return {numbers<int>(given.attr("start")), numbers<int>(given.attr("entry"))}; }

struct Given {
  nb::kwargs all;

  nb::object of(const char* name) const { return nb::object(all[name]); }
  Ints ints(const char* name) const { return numbers<int>(of(name)); }
  Reals reals(const char* name) const { return numbers<double>(of(name)); }
  Rows rows(const char* name) const { return placer::rows(of(name)); }
  double real(const char* name) const { return nb::cast<double>(of(name)); }
  int number(const char* name) const { return nb::cast<int>(of(name)); }
  bool flag(const char* name) const { return nb::cast<bool>(of(name)); }
};

template <class T> nb::object array(const std::vector<T>& values) {
  auto* copy = new std::vector<T>(values);
  nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(copy->data(), {copy->size()}, owner));
}

}  // namespace placer
