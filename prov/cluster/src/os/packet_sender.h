// Sends bursts as raw Ethernet frames through a packet socket that receives nothing. Every message begins
// with a virtio_net_hdr. With this header, a run of frames goes to the driver as one super-frame, which the
// NIC or the kernel divides into frames (UDP segmentation offload).
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/counters.h"
#include "link/link.h"
#include "os/descriptor.h"
#include "os/detached_thread.h"
#include "os/packet_headers.h"
#include "os/send_batch.h"

namespace cluster::os {

struct PacketSenderSettings {
  bool qdisc_bypass = true;
  bool offload = true;
  bool ethertype = false;       ///< single frames may leave on the EtherType path
  std::size_t segment_max = 0;  ///< largest frame that the interface can send
};

class PacketSender {
 public:
  /// Opens a sender. Returns null on failure, with an errno in `error`.
  static std::unique_ptr<PacketSender> open(int index, const Origin& origin,
                                            const PacketSenderSettings& settings, Counters& counters,
                                            int& error);
  ~PacketSender() { close_aside(std::move(socket_)); }
  PacketSender(const PacketSender&) = delete;
  PacketSender& operator=(const PacketSender&) = delete;

  /// Does what Link::send_burst() does. The hardware address of every path must be known.
  std::size_t send(std::span<const link::OutFrame> frames);
  /// Does what send() does for one frame, with the headers kept from the last call of send() for a single
  /// frame. If the headers do not fit the path, sends nothing and returns nullopt.
  std::optional<std::size_t> send_on_kept_path(const link::OutFrame& frame);
  /// Called after the address of the origin was replaced or has moved to another interface, or after the
  /// hardware address or MTU of the interface has changed.
  void renew(int index, const Origin& origin, std::size_t segment_max);

 private:
  PacketSender(Descriptor socket, int index, const Origin& origin, const PacketSenderSettings& settings,
               Counters& counters);
  bool has_carrier() const;
  /// Returns true if a single frame leaves on the EtherType path.
  bool by_ethertype(const link::Path& path, std::size_t size) const {
    return ethertype_ && path.ethertype && size <= link::kEthertypeFrameMax;
  }
  void keep_headers(const link::OutFrame& frame);
  std::size_t over(std::size_t sent, std::size_t frames);
  void open_message(std::span<const link::OutFrame> run, std::byte* header);

  Descriptor socket_;
  int index_;  ///< index of the interface
  Origin origin_;
  Counters& counters_;
  std::size_t segment_max_;
  bool ethertype_;
  SendBatch batch_;
  KeptHeaders kept_;
  std::array<std::array<std::byte, sizeof(OffloadHeader) + kHeadersMax>, link::kBurstMax> headers_;
};

}  // namespace cluster::os
