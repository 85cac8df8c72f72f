// What the application asks for, one struct per kind of operation: messages, receives, remote writes, reads
// and atomics. Every variant of a libfabric call becomes one of these in api/; nothing below looks at
// libfabric's types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "carrier/memory_access.h"
#include "wire/atomic.h"

namespace cluster::protocol {

inline constexpr std::size_t kIovMax = 8;                        ///< iov_limit
inline constexpr std::size_t kInjectMax = 1024;                  ///< inject_size, bytes
inline constexpr std::uint64_t kAddrUnspec = ~std::uint64_t{0};  ///< FI_ADDR_UNSPEC

/// What must not overtake what towards one peer, at any size (FI_ORDER_*). Messages never overtake messages
/// or the writes before them, and atomics never each other; any order beyond that may cost waiting.
struct Ordering {
  bool read_after_read = false;
  bool read_after_write = false;
  bool write_after_read = false;
  bool write_after_write = false;
  bool send_after_read = false;
  bool read_after_send = false;   ///< sends may be overtaken only by what the initiator does alone
  bool write_after_send = false;  ///< likewise
};

/// When a send counts as complete (fi_cq(3), completion levels).
enum class CompletionLevel : std::uint8_t {
  inject,    ///< the application may change the buffer
  transmit,  ///< the peer's library has the message
  delivery,  ///< the peer's protocol has placed it in a receive or in its unexpected store
  match,     ///< a receive of the peer's application has taken it
};

struct SendOp {
  std::span<const ConstBytes> slices{};  ///< at most kIovMax; only read during the call
  MemoryHandles handles = nullptr;       ///< of the slices, likewise; null: none
  std::size_t length = 0;                ///< sum of the slices
  std::uint64_t to = 0;                  ///< address handle
  void* context = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  bool tagged = false;
  bool has_data = false;
  bool inject = false;      ///< the caller may change the buffers on return; length <= kInjectMax
  bool report = true;       ///< write a completion on success (failures always do)
  bool more = false;        ///< FI_MORE: another one follows at once, do not transmit for this one alone
  bool fence = false;       ///< begin after everything before it, to this peer, is complete
  bool collective = false;  ///< part of a collective operation: tagged, and its outcome goes to the listener
  CompletionLevel completion_level = CompletionLevel::transmit;
};

enum class Peek : std::uint8_t { none, look, claim, discard };

struct RecvOp {
  std::span<const Bytes> slices{};
  std::uint64_t from = kAddrUnspec;  ///< address handle or kAddrUnspec
  void* context = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  bool tagged = false;
  bool collective = false;  ///< of a message that is part of a collective operation
  bool report = true;
  Peek peek = Peek::none;  ///< look for an unexpected message instead of posting
  /// Not 0: a buffer for many messages (FI_MULTI_RECV), packed one behind the other, that is released when
  /// fewer bytes than these are free. Untagged, and in one slice.
  std::size_t min_multi_recv = 0;
  bool recv_claimed = false;     ///< receive the message claimed earlier with this context
  bool discard_claimed = false;  ///< ... or discard it
};

/// A receive of one buffer for one message, which asks for nothing else.
struct ShortReceive {
  Bytes buffer;
  std::uint64_t from = kAddrUnspec;
  void* context = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  bool tagged = false;
  bool report = true;
};

inline constexpr std::size_t kRmaIovMax = 8;  ///< rma_iov_limit

using RmaIov = carrier::RemoteRange;

/// What remote writes, reads and atomics have in common.
struct RmaOp {
  std::span<const RmaIov> remote{};  ///< at most kRmaIovMax; their lengths sum up to `length`
  std::size_t length = 0;
  std::uint64_t to = 0;  ///< address handle
  void* context = nullptr;
  MemoryHandles handles = nullptr;  ///< of the local buffers; only read during the call; null: none
  bool inject = false;              ///< the caller may change its data on return; without meaning for a read
  bool report = true;
  bool more = false;   ///< FI_MORE
  bool fence = false;  ///< begin after everything before it, to this peer, is complete
};

/// Complete when the bytes are in the peer's memory, whatever completion level was requested.
struct WriteOp : RmaOp {
  using Buffer = ConstBytes;

  std::span<const ConstBytes> slices{};
  std::uint64_t data = 0;
  bool has_data = false;
};

struct ReadOp : RmaOp {
  using Buffer = Bytes;

  std::span<const Bytes> slices{};
};

/// Most target bytes of one atomic operation.
inline constexpr std::size_t kAtomicMax = 4096;

/// All arrays are as long as the remote ranges together; a multiple of the element's size in each range.
struct AtomicRmaOp : RmaOp {
  wire::AtomicCode code;                 ///< one that is supported() (atomic_arithmetic.h)
  std::span<const ConstBytes> slices;    ///< operands; none if the code has none
  std::span<const ConstBytes> compares;  ///< comparands or masks, likewise
  std::span<const Bytes> results;        ///< where it goes if the code fetches
};

}  // namespace cluster::protocol
