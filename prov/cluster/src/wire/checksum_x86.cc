// Which of the implementations this x86-64 processor has. It is asked at run time, since one plugin serves
// all nodes of a cluster; the answer for 64-byte vectors includes that the system saves their registers.
#include "wire/checksum_x86.h"

#include <array>

#include "wire/checksum_fast.h"

namespace cluster::wire::fast {
namespace {

constexpr std::array<Implementation, 2> kImplementations{{{"folded", folded}, {"chained", chained}}};

}  // namespace

std::span<const Implementation> implementations() {
  __builtin_cpu_init();
  const std::span<const Implementation> all(kImplementations);
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul")) return {};
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
  return wide ? all : all.subspan(1);
}

}  // namespace cluster::wire::fast
