// A C caller may put any number into an enumeration. In C++, reading a number that is no enumerator is
// undefined behaviour. So number_of() reads such a field as the integer in memory.
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
