// Frames out of a packet socket, one system call each, several in one, or through a ring of frames
// that the kernel reads (PACKET_TX_RING): there each frame is copied into its slot first.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "wire_choice.h"

namespace perf {

class WireSender {
 public:
  static constexpr std::size_t kPartsMax = 96;

  WireSender(const WireChoice& choice, std::size_t frame_max);
  WireSender(const WireSender&) = delete;
  WireSender& operator=(const WireSender&) = delete;
  ~WireSender();

  /// One more frame, of at most kPartsMax parts; what they point to stays until it is on its way: when a
  /// batch is full, or flushed.
  void add(std::span<const iovec> parts);
  void flush();

 private:
  void open_ring(std::size_t frame_max);
  void fill_slot(std::span<const iovec> parts);
  void start_ring();
  void send_one(msghdr& message);
  void send_many();

  int socket_ = -1;
  SendBy by_;
  unsigned batch_;
  unsigned waiting_ = 0;
  std::vector<mmsghdr> messages_;
  std::vector<std::array<iovec, kPartsMax>> parts_;
  char* ring_ = nullptr;
  std::size_t ring_bytes_ = 0;
  std::size_t data_at_ = 0;
  std::vector<char*> slots_;
  std::size_t next_ = 0;
};

/// Binds a packet socket to the interface, or to all if there is none; of type 0 it is given nothing.
void bind_to(int socket, const std::string& interface, int type);

}  // namespace perf
