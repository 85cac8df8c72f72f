// Enumerations whose values come from outside may hold any number; the language does not let one look at such
// a value. So they are read as what they are in memory, and compared as numbers.
#pragma once

#include <cstring>
#include <type_traits>

namespace cluster {

template <typename Enumeration>
int number_of(const Enumeration& field) {
  static_assert(std::is_enum_v<Enumeration> && sizeof field == sizeof(int));
  int number;
  std::memcpy(&number, &field, sizeof number);
  return number;
}

}  // namespace cluster
