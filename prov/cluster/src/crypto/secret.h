// Key material that leaves no trace: wiped when it goes, never copied by accident. Where the bytes lie (core
// dumps, swap) is the matter of their owner: os/secret_memory.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/bytes.h"

namespace cluster::crypto {

/// Not left out by the compiler, though nothing reads the bytes afterwards.
inline void wipe(Bytes bytes) { explicit_bzero(bytes.data(), bytes.size()); }
/// It is empty afterwards.
inline void wipe(std::string& text) {
  wipe(as_bytes(text.data(), text.size()));
  text.clear();
}

template <std::size_t N>
class Secret {
 public:
  Secret() = default;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { wipe(bytes_); }

  Bytes bytes() { return bytes_; }
  ConstBytes bytes() const { return bytes_; }

 private:
  std::array<std::byte, N> bytes_{};
};

}  // namespace cluster::crypto
