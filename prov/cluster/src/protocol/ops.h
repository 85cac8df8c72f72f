// The operations of the application, one struct for each kind: sends, receives, remote writes, reads and
// atomics. api/ turns every variant of a libfabric call into one of these structs. The components below api/
// use no types of libfabric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "carrier/memory_access.h"
#include "wire/atomic.h"
#include "wire/segment.h"

namespace cluster::protocol {

inline constexpr std::size_t kIovMax = 8;                        ///< iov_limit
inline constexpr std::size_t kInjectMax = 1024;                  ///< inject_size, bytes
inline constexpr std::uint64_t kAddrUnspec = ~std::uint64_t{0};  ///< FI_ADDR_UNSPEC

/// Says which operations to the same peer take effect in order, whatever their size (FI_ORDER_*). For
/// example, `read_after_write` means that a read must not overtake an earlier write. Messages never overtake
/// messages or earlier writes, and atomics never overtake each other, whatever is set here. Each order that
/// is set here may make operations wait.
struct Ordering {
  bool read_after_read = false;
  bool read_after_write = false;
  bool write_after_read = false;
  bool write_after_write = false;
  bool send_after_read = false;
  bool read_after_send = false;   ///< matters only for reads that the initiator performs alone
  bool write_after_send = false;  ///< the same as read_after_send, for writes
};

/// When a send counts as complete (fi_cq(3), completion levels).
enum class CompletionLevel : std::uint8_t {
  inject,    ///< the application may change the buffer
  transmit,  ///< the peer's library has the message
  delivery,  ///< the peer's protocol has put the message into a receive or into its store
  match,     ///< a receive of the peer's application has taken the message
};

struct SendOp {
  std::span<const ConstBytes> slices{};  ///< at most kIovMax; only read during the call
  MemoryHandles handles = nullptr;       ///< handles of the slices, only read during the call; null: none
  std::size_t length = 0;                ///< sum of the slices' lengths
  std::uint64_t to = 0;                  ///< address handle
  void* context = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  bool tagged = false;
  bool has_data = false;
  bool inject = false;  ///< the caller may change the buffers on return; length <= kInjectMax
  bool report = true;   ///< write a completion on success (failures always write one)
  /// FI_MORE: another operation follows at once, so this one alone need not be transmitted
  bool more = false;
  bool fence = false;     ///< begin after all earlier operations to this peer are complete
  bool internal = false;  ///< an internal message: no receive of the application matches it
  bool deferred = false;  ///< of a deferred work queue; DeferredListener learns the outcome
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
  bool internal = false;  ///< for an internal message
  bool deferred = false;  ///< of a deferred work queue; DeferredListener learns the outcome
  bool report = true;
  Peek peek = Peek::none;  ///< look for an unexpected message instead of posting
  /// If this is not 0, the receive is a buffer for many messages (FI_MULTI_RECV), which lie in the buffer
  /// without gaps. When fewer bytes than this are free, the buffer takes no more messages. The buffer must
  /// have one slice.
  std::size_t min_multi_recv = 0;
  bool recv_claimed = false;     ///< receive the message claimed earlier with this context
  bool discard_claimed = false;  ///< discard the message claimed earlier with this context
};

/// A receive of one buffer for one message, without options.
struct ShortReceive {
  Bytes buffer;
  std::uint64_t from = kAddrUnspec;
  void* context = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  bool tagged = false;
  bool report = true;
};

/// A message of one buffer, without options. Such a message can take a fast lane (shm/fast_lane.h,
/// reliability/frame_lane.h).
struct ShortSend {
  wire::EagerHeader header;
  const void* payload = nullptr;  ///< header.length bytes
  void* context = nullptr;
  /// False if the send is injected or has selective completion, so that only a failure is reported.
  bool report = true;
  /// Matters only between nodes, where a message can be complete before the peer has it.
  CompletionLevel completion_level = CompletionLevel::transmit;

  static constexpr std::size_t kBytesMax = 4096;
};

inline constexpr std::size_t kRmaIovMax = 8;  ///< rma_iov_limit

using RmaIov = carrier::RemoteRange;

/// What remote writes, reads and atomics have in common.
struct RmaOp {
  std::span<const RmaIov> remote{};  ///< at most kRmaIovMax; their lengths sum up to `length`
  std::size_t length = 0;
  std::uint64_t to = 0;  ///< address handle
  void* context = nullptr;
  MemoryHandles handles = nullptr;  ///< handles of the local buffers, only read during the call; null: none
  bool inject = false;              ///< the caller may change the buffers on return; ignored for a read
  bool report = true;
  bool more = false;      ///< FI_MORE
  bool fence = false;     ///< begin after all earlier operations to this peer are complete
  bool deferred = false;  ///< of a deferred work queue; DeferredListener learns the outcome
};

/// A remote write. It is complete when the bytes are in the peer's memory, whatever completion level was
/// requested.
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

/// A remote write of one buffer to one range, without options. Such a write can take the access lane
/// (shm/access_lane.h).
struct ShortWrite {
  std::uint64_t address;
  std::uint64_t key;
  std::size_t length;  ///< 1 to kBytesMax
  const std::byte* source;
  void* context;
  bool report;

  static constexpr std::size_t kBytesMax = 4096;
};

/// A remote read of one range into one buffer, without options. Such a read can take the access lane, too.
struct ShortRead {
  std::uint64_t address;
  std::uint64_t key;
  std::size_t length;
  std::byte* target;
  void* context;
  bool report;

  static constexpr std::size_t kBytesMax = ShortWrite::kBytesMax;
};

/// The largest number of target bytes of one atomic operation.
inline constexpr std::size_t kAtomicMax = 4096;

/// An atomic operation. Each array is as long as all remote ranges together. The length of each range is a
/// multiple of the element's size.
struct AtomicRmaOp : RmaOp {
  wire::AtomicCode code;                 ///< an operation that is supported() (atomic_arithmetic.h)
  std::span<const ConstBytes> slices;    ///< operands; empty if the operation has none
  std::span<const ConstBytes> compares;  ///< comparands or masks; empty if the operation has none
  std::span<const Bytes> results;        ///< where the previous values go if the operation fetches
};

}  // namespace cluster::protocol
