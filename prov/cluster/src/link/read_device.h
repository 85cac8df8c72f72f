// The interface of an RDMA device that reads the memory of peers (os/verbs_reader.h). This side has a queue
// pair for each peer, connected with a queue pair of the peer (RC). The device of this side sends read
// requests, and the peer's device answers them. No processor takes part. A device that is exact() loses
// nothing unless the queue pair breaks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"

namespace cluster::link {

/// One end of a connection between two devices.
struct QueuePairEnd {
  std::array<std::byte, 16> gid{};
  std::uint32_t number = 0;    ///< below 2^24; 0: none
  std::uint32_t sequence = 0;  ///< number of the first packet that this end sends, below 2^24
  std::uint8_t mtu = 0;        ///< code of the MTU of this end's port: 1 = 256 bytes, 2 = 512, ..., 5 = 4096
  std::uint8_t reads = 0;      ///< how many reads this end can answer at the same time

  friend bool operator==(const QueuePairEnd&, const QueuePairEnd&) = default;
};

/// The names of memory that the device of this side knows.
struct DeviceMemoryKeys {
  std::uint32_t handle = 0;  ///< names the registration; never 0
  std::uint32_t local = 0;   ///< the key by which the device of this side names the memory
  std::uint32_t remote = 0;  ///< the key by which the peer's device names the memory
};

/// Who uses the memory: the device of this side writes to it, or the peer's device reads it.
enum class DeviceUse : std::uint8_t { written_here, read_by_peer };

/// A read of `into.size()` bytes.
struct DeviceRead {
  Bytes into;
  std::uint32_t local_key = 0;
  std::uint64_t address = 0;
  std::uint32_t remote_key = 0;
};

/// Reports the end of a read: the oldest read of this queue pair whose end was not reported before.
struct DeviceReadEnd {
  std::uint32_t queue_pair = 0;
  bool succeeded = false;
};

/// The registrations of memory that a device keeps, and has kept.
struct DeviceMemoryUse {
  std::uint64_t hits = 0;     ///< uses of a registration that was kept
  std::uint64_t misses = 0;   ///< uses for which memory was registered
  std::uint64_t dropped = 0;  ///< kept registrations whose memory the application has changed
  std::size_t entries = 0;    ///< registrations now
  std::size_t bytes = 0;      ///< their length
  std::size_t bytes_max = 0;  ///< limit of what is kept
};

class ReadDevice {
 public:
  virtual ~ReadDevice() = default;

  /// Returns the name that users know, such as "rxe0/1".
  virtual const char* name() const = 0;
  /// Returns false if a read may end with success although its bytes have not arrived. In this case the user
  /// of the device has to compare a checksum. Soft-RoCE devices are not exact (os/verbs_reader.cc).
  virtual bool exact() const = 0;

  /// Makes a queue pair that is not connected yet. The caller sets `sequence` in the result before connect().
  /// Returns nullopt if the device makes no more queue pairs.
  virtual std::optional<QueuePairEnd> create() = 0;
  /// Returns true if the peer's queue pair is on the subnet of this device.
  virtual bool reaches(const QueuePairEnd&) const { return true; }
  /// Connects a queue pair. If that fails, returns false, and the queue pair must be destroyed.
  virtual bool connect(const QueuePairEnd& ours, const QueuePairEnd& peer) = 0;
  /// Ends the queue pair, and forgets the memory that was added for it. When this function returns, the
  /// device neither writes to that memory nor reads it for the peer. poll() reports no more reads of this
  /// queue pair.
  virtual void destroy(std::uint32_t queue_pair) = 0;

  /// Makes memory known for one queue pair. The peers at other queue pairs cannot read it. Returns nullopt if
  /// the device refuses the memory.
  virtual std::optional<DeviceMemoryKeys> add_memory(std::uint32_t queue_pair, ConstBytes memory,
                                                     DeviceUse use) = 0;
  /// When this function returns, the peer's device has no access to the memory, and the device of this side
  /// does not use it any more. The device may keep the registration for the next add_memory().
  virtual void remove_memory(std::uint32_t handle) = 0;
  /// Called now and then. Ends registrations of memory that the application has unmapped.
  virtual void tidy() {}
  virtual DeviceMemoryUse memory_use() const { return {}; }
  /// Returns why the device keeps no registrations. Empty if it does.
  virtual std::string keeps_nothing_because() const { return {}; }
  /// Returns why the device has refused memory the last time. Empty if it has never refused any.
  virtual std::string refused_memory_because() const { return {}; }

  /// Begins a read. Returns false if the queue pair does not exist, or if the device refuses the read. The
  /// caller must have fewer than kReadsMax reads of this queue pair in progress.
  virtual bool read(std::uint32_t queue_pair, const DeviceRead& read) = 0;
  static constexpr std::size_t kReadsMax = 16;
  /// Writes an element to `ends` for each read that has ended, and returns the number of elements. The reads
  /// of one queue pair end in the order in which they began. After a failure, the queue pair is broken.
  virtual std::size_t poll(std::span<DeviceReadEnd> ends) = 0;

  /// Reads the events of the device since the last call. Returns false if one of them says that the device
  /// has failed or was removed, or that its port is down. In this case the caller has to destroy this object.
  virtual bool works() = 0;
  /// Like works(). Also notices the removal of a device that reports no event, and takes longer.
  virtual bool exists() = 0;
  /// Returns the descriptor that becomes readable when a read ends after arm(), or when works() may return
  /// false. Returns -1 if there is none.
  virtual int descriptor() const = 0;
  /// Makes descriptor() readable at the end of the next read. Returns false if that fails. In this case a
  /// thread that sleeps would miss the end of a read.
  virtual bool arm() = 0;
};

/// Opens the device. If that fails, returns null and sets `reason`.
using OpenReadDevice = std::function<std::unique_ptr<ReadDevice>(std::string& reason)>;

}  // namespace cluster::link
