// What the application asks for, one struct per direction: every variant of fi_send and fi_recv
// folds into these in api/ and nothing below looks at libfabric's types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace cluster::protocol {

inline constexpr std::size_t kSlicesMax = 8;                  ///< iov_limit
inline constexpr std::size_t kInjectMax = 1024;               ///< inject_size, bytes
inline constexpr std::uint64_t kAnyPeer = ~std::uint64_t{0};  ///< FI_ADDR_UNSPEC

/// When a send counts as complete (fi_cq(3), completion levels).
enum class Promise : std::uint8_t {
  buffer_free,  ///< the buffer may be used again
  transmitted,  ///< the peer's library has it
  delivered,    ///< the peer's protocol has placed it in a receive or in its unexpected store
};

struct SendOrder {
  std::span<const ConstBytes> slices{};  ///< at most kSlicesMax; only read during the call
  std::size_t length = 0;                ///< sum of the slices
  std::uint64_t to = 0;                  ///< address handle
  void* context = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  bool tagged = false;
  bool has_data = false;
  bool inject = false;  ///< buffers are the caller's again on return; length <= kInjectMax
  bool report = true;   ///< write a completion on success (failures always do)
  bool more = false;    ///< another one follows at once: do not hurry this one out
  Promise promise = Promise::transmitted;
};

enum class Peek : std::uint8_t { none, look, claim, discard };

struct ReceiveOrder {
  std::span<const Bytes> slices{};
  std::uint64_t from = kAnyPeer;  ///< address handle or kAnyPeer
  void* context = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  bool tagged = false;
  bool report = true;
  Peek peek = Peek::none;     ///< look for an unexpected message instead of posting
  bool take_claimed = false;  ///< receive the message claimed earlier with this context
  bool drop_claimed = false;  ///< ... or throw it away
};

}  // namespace cluster::protocol
