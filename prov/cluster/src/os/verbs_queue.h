// The queue pair of a verbs link, with its completion queues and the registered memory for its frames. The
// link decides what to send and what failures mean; this class knows the objects of libibverbs and the layout
// of the buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "os/verbs_device.h"

namespace cluster::os {

/// Memory that the device reads and writes. A forked child does not get this memory. Otherwise, after a fork,
/// the parent might write to a copy of a page, while the device keeps the original.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t size);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Returns null if the kernel has refused the memory.
  std::byte* begin() const { return begin_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::byte* begin_ = nullptr;
};

/// Makes forked children close the descriptors of the library (descriptor.h). In this process, the library
/// itself closes them.
class ChildrenClose {
 public:
  ChildrenClose() = default;
  ~ChildrenClose() { reset(); }
  ChildrenClose(const ChildrenClose&) = delete;
  ChildrenClose& operator=(const ChildrenClose&) = delete;

  void add(int number);
  void reset();

 private:
  std::vector<int> numbers_;
};

/// Returns a text about the call `what` that has failed with `error`, an errno. The text names the remedy if
/// the limit of locked memory may be the cause.
std::string failed_with(const char* what, int error);

/// Makes calls on a descriptor of the library return at once. Returns false on failure.
bool set_nonblocking(int descriptor);

class VerbsQueue {
 public:
  static constexpr std::uint32_t kReceives = 512;
  static constexpr std::uint32_t kSends = 128;
  static constexpr std::size_t kReceiveBatch = 32;

  /// `port` must outlive the object. Between close() and open(), its device may change, but not its MTU.
  VerbsQueue(const VerbsLibrary& library, const VerbsPort& port);
  ~VerbsQueue() { close(); }
  VerbsQueue(const VerbsQueue&) = delete;
  VerbsQueue& operator=(const VerbsQueue&) = delete;

  /// Opens the device, and makes the queue pair ready to send. On failure, returns false and sets `reason`.
  bool open(std::string& reason);
  /// Destroys the queue pair. After the call, no send uses an address handle, so the caller can destroy the
  /// handles.
  void stop() { queue_.reset(); }
  /// Gives the device back. The memory of received frames stays.
  void close();

  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }
  ibv_comp_channel* channel() const { return channel_.get(); }
  ibv_cq* arrivals() const { return arrivals_.get(); }
  ibv_cq* departures() const { return departures_.get(); }
  ibv_qp* pair() const { return queue_.get(); }
  /// Returns the size of the longest frame that fits into a request itself (inline data).
  std::uint32_t inline_max() const { return inline_max_; }

  /// Gives receive buffers to the device. Returns false and sets errno on failure.
  bool post_receives(std::span<const std::uint32_t> slots);
  /// Returns the frame of a completed receive, or an empty one if the device has not written a whole header.
  Bytes received(const ibv_wc& completion) const;
  /// Returns the address of the sender of a completed receive.
  SocketAddress sender(const ibv_wc& completion) const;
  /// Returns the buffer for the send of this number.
  std::byte* send_buffer(std::uint32_t number) const;
  /// Returns the description of the first `size` bytes of a send buffer.
  ibv_sge piece(std::byte* buffer, std::size_t size) const;

 private:
  bool create(std::string& reason);
  bool start(std::string& reason);
  std::byte* receive_slot(std::uint64_t slot) const { return memory_.begin() + slot * receive_size_; }

  const VerbsLibrary& library_;
  const VerbsPort& port_;
  std::size_t receive_size_;
  DeviceMemory memory_;
  ChildrenClose children_;
  VerbsHandle<ibv_context> context_;
  VerbsHandle<ibv_pd> domain_;
  VerbsHandle<ibv_mr> registration_;
  VerbsHandle<ibv_comp_channel> channel_;
  VerbsHandle<ibv_cq> arrivals_;
  VerbsHandle<ibv_cq> departures_;
  VerbsHandle<ibv_qp> queue_;
  std::uint32_t inline_max_ = 0;
  std::array<ibv_recv_wr, kReceiveBatch> receive_requests_;
  std::array<ibv_sge, kReceiveBatch> receive_pieces_;
};

}  // namespace cluster::os
