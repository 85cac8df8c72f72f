#include "reductions.h"

#include <climits>

namespace coll {
namespace {

constexpr fi_datatype integer(unsigned size, bool is_signed) {
  switch (size) {
    case 1: return is_signed ? FI_INT8 : FI_UINT8;
    case 2: return is_signed ? FI_INT16 : FI_UINT16;
    case 4: return is_signed ? FI_INT32 : FI_UINT32;
    default: return is_signed ? FI_INT64 : FI_UINT64;
  }
}
template <typename Value>
constexpr fi_datatype integer_of() {
  return integer(sizeof(Value), Value(-1) < Value(0));
}

enum class Class { integer, real, bits };

struct Type {
  fi_datatype type;
  Class kind;
};

/// Searches the table linearly, because handles are not constants in every MPI library. The most frequent
/// types are first.
bool find_type(MPI_Datatype type, Type& found) {
  const struct {
    MPI_Datatype mpi;
    Type type;
  } kTypes[] = {
      {MPI_DOUBLE, {FI_DOUBLE, Class::real}},
      {MPI_INT, {integer_of<int>(), Class::integer}},
      {MPI_FLOAT, {FI_FLOAT, Class::real}},
      {MPI_LONG, {integer_of<long>(), Class::integer}},
      {MPI_UNSIGNED, {integer_of<unsigned>(), Class::integer}},
      {MPI_UNSIGNED_LONG, {integer_of<unsigned long>(), Class::integer}},
      {MPI_LONG_LONG, {integer_of<long long>(), Class::integer}},
      {MPI_UNSIGNED_LONG_LONG, {integer_of<unsigned long long>(), Class::integer}},
      {MPI_INT64_T, {FI_INT64, Class::integer}},
      {MPI_UINT64_T, {FI_UINT64, Class::integer}},
      {MPI_INT32_T, {FI_INT32, Class::integer}},
      {MPI_UINT32_T, {FI_UINT32, Class::integer}},
      {MPI_INT16_T, {FI_INT16, Class::integer}},
      {MPI_UINT16_T, {FI_UINT16, Class::integer}},
      {MPI_INT8_T, {FI_INT8, Class::integer}},
      {MPI_UINT8_T, {FI_UINT8, Class::integer}},
      {MPI_SHORT, {integer_of<short>(), Class::integer}},
      {MPI_UNSIGNED_SHORT, {integer_of<unsigned short>(), Class::integer}},
      {MPI_SIGNED_CHAR, {FI_INT8, Class::integer}},
      {MPI_UNSIGNED_CHAR, {FI_UINT8, Class::integer}},
      {MPI_LONG_DOUBLE, {FI_LONG_DOUBLE, Class::real}},
      {MPI_BYTE, {FI_UINT8, Class::bits}},
  };
  for (const auto& each : kTypes) {
    if (each.mpi != type) continue;
    found = each.type;
    return true;
  }
  return false;
}

struct Operation {
  fi_op op;
  bool of_reals;
  bool of_integers;
  bool of_bits;
};

bool find_operation(MPI_Op op, Operation& found) {
  const struct {
    MPI_Op mpi;
    Operation operation;
  } kOperations[] = {
      {MPI_SUM, {FI_SUM, true, true, false}},    {MPI_MAX, {FI_MAX, true, true, false}},
      {MPI_MIN, {FI_MIN, true, true, false}},    {MPI_PROD, {FI_PROD, true, true, false}},
      {MPI_LAND, {FI_LAND, false, true, false}}, {MPI_LOR, {FI_LOR, false, true, false}},
      {MPI_LXOR, {FI_LXOR, false, true, false}}, {MPI_BAND, {FI_BAND, false, true, true}},
      {MPI_BOR, {FI_BOR, false, true, true}},    {MPI_BXOR, {FI_BXOR, false, true, true}},
  };
  for (const auto& each : kOperations) {
    if (each.mpi != op) continue;
    found = each.operation;
    return true;
  }
  return false;
}

}  // namespace

bool translate(MPI_Datatype type, MPI_Op op, fi_datatype& fi_type, fi_op& fi_operation) {
  Type elements;
  Operation operation;
  if (!find_type(type, elements) || !find_operation(op, operation)) return false;
  fi_type = elements.type;
  fi_operation = operation.op;
  switch (elements.kind) {
    case Class::real: return operation.of_reals;
    case Class::integer: return operation.of_integers;
    case Class::bits: return operation.of_bits;
  }
  return false;
}

}  // namespace coll
