// An enumeration that a C caller filled in may hold any number, and reading a number that is no enumerator is undefined. So such a field is
// read as the integer that it is in memory.
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
