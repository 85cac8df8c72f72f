// The portable implementation processes eight bytes at a time, and looks up each of them in its own table.
// fast::implementations() lists the faster implementations that the processor can run. crc32c() uses the
// first of these.
#include "wire/checksum.h"

#include <array>
#include <cstring>

#include "wire/endian.h"

namespace cluster::wire {
namespace {

using Table = std::array<std::uint32_t, 256>;

consteval std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t shorter = tables[k - 1][byte];
      tables[k][byte] = (shorter >> 8) ^ tables[0][shorter & 0xff];
    }
  }
  return tables;
}

constexpr std::array<Table, 8> kTables = make_tables();

std::uint32_t by_tables(std::uint32_t crc, const std::byte* at, std::size_t size) {
  for (; size >= 8; size -= 8, at += 8) {
    Le64 field;
    std::memcpy(&field, at, sizeof field);
    const std::uint64_t word = field ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; size > 0; --size, ++at) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint32_t>(*at)) & 0xff];
  }
  return crc;
}

fast::Implementation find_fastest() {
  const std::span<const fast::Implementation> all = fast::implementations();
  const fast::Implementation fastest =
      all.empty() ? fast::Implementation{"tables", by_tables, fast::copy_and_update<by_tables>} : all.front();
  fast::update.store(fastest.update, std::memory_order_relaxed);
  fast::copy.store(fastest.copy, std::memory_order_relaxed);
  return fastest;
}

std::uint32_t first_update(std::uint32_t crc, const std::byte* at, std::size_t size) {
  return find_fastest().update(crc, at, size);
}

std::uint32_t first_copy(std::uint32_t crc, std::byte* to, const std::byte* at, std::size_t size) {
  return find_fastest().copy(crc, to, at, size);
}

}  // namespace

constinit std::atomic<fast::UpdateFunction> fast::update{first_update};
constinit std::atomic<fast::CopyFunction> fast::copy{first_copy};

std::uint32_t crc32c_portable(std::uint32_t crc, ConstBytes data) {
  return ~by_tables(~crc, data.data(), data.size());
}

}  // namespace cluster::wire
