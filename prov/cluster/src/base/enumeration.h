// A C caller may store any number in a field of enumeration type. If the number is not a value of the
// enumeration, reading the field is undefined behaviour in C++. Therefore number_of() reads the field's
// memory as an integer.
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
