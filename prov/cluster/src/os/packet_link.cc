#include "os/packet_link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "os/mixed_sender.h"
#include "os/neighbour_sender.h"
#include "os/packet_ring.h"
#include "os/packet_sender.h"
#include "os/ring_claim.h"
#include "os/udp_link.h"
#include "os/udp_receiver.h"

namespace cluster::os {
namespace {

constexpr std::size_t kSideBuffers = 4;    // where the socket is the side entrance
constexpr std::size_t kFrontBuffers = 16;  // where it is the only one
constexpr unsigned kQuietPolls = 64;
constexpr unsigned kEagerPolls = 256;

/// What both kinds share.
class PacketLink : public link::Link {
 public:
  PacketLink(std::shared_ptr<UdpPort> port, std::size_t frame_max)
      : port_(std::move(port)), frame_max_(frame_max) {}

  const char* name() const override { return "packet"; }
  std::size_t frame_max() const override { return frame_max_; }
  std::size_t complaints(std::span<link::Complaint> complaints) override {
    return port_->complaints(complaints);
  }
  std::vector<int> descriptors() const override { return {port_->socket()}; }

 protected:
  const std::shared_ptr<UdpPort>& port() const { return port_; }

 private:
  std::shared_ptr<UdpPort> port_;
  std::size_t frame_max_;
};

class SocketPacketLink final : public PacketLink {
 public:
  SocketPacketLink(std::shared_ptr<UdpPort> port, std::size_t frame_max, std::unique_ptr<PacketSender> raw,
                   int index, const Environment& environment)
      : PacketLink(port, frame_max),
        sender_(std::move(raw), index, port, environment),
        receiver_(std::move(port), kFrontBuffers, environment.counters) {}

  std::size_t send_burst(std::span<const link::OutFrame> frames) override { return sender_.send(frames); }
  std::size_t receive_burst(std::span<link::InFrame> frames) override { return receiver_.receive(frames); }

 private:
  NeighbourSender sender_;
  UdpReceiver receiver_;
};

/// A ring and the right to have it.
struct Ring {
  Descriptor claim;
  std::unique_ptr<PacketRing> frames;
};

class RingPacketLink final : public PacketLink {
 public:
  RingPacketLink(std::shared_ptr<UdpPort> port, std::size_t frame_max, std::unique_ptr<PacketSender> raw,
                 std::vector<SocketAddress> own, Ring ring, Counters& counters)
      : PacketLink(port, frame_max),
        sender_(std::move(raw), port, std::move(own), counters),
        ring_(std::move(ring)),
        counters_(counters),
        socket_(std::move(port), kSideBuffers, counters) {}

  std::size_t send_burst(std::span<const link::OutFrame> frames) override { return sender_.send(frames); }
  std::size_t receive_burst(std::span<link::InFrame> frames) override;
  std::size_t complaints(std::span<link::Complaint> complaints) override {
    ring_.frames->forget_errors();
    return PacketLink::complaints(complaints);
  }
  std::vector<int> descriptors() const override { return {ring_.frames->descriptor(), port()->socket()}; }
  void before_sleep() override { eager_polls_ = std::max(eager_polls_, 2u); }

 private:
  bool socket_is_due();

  MixedSender sender_;
  Ring ring_;
  Counters& counters_;
  UdpReceiver socket_;
  unsigned eager_polls_ = kEagerPolls;  ///< left to ask the socket each time
  unsigned quiet_polls_ = 0;            ///< since the socket was asked
};

bool RingPacketLink::socket_is_due() {
  if (eager_polls_ > 0) {
    --eager_polls_;
    return true;
  }
  return ++quiet_polls_ >= kQuietPolls;
}

std::size_t RingPacketLink::receive_burst(std::span<link::InFrame> frames) {
  const bool due = socket_is_due();
  // Even a ring that is never empty leaves the socket its turn.
  const std::size_t reserved = due && frames.size() > kSideBuffers ? kSideBuffers : 0;
  const std::size_t taken = ring_.frames->receive(frames.first(frames.size() - reserved));
  // What this node sends to itself comes by the socket; on the wire its name is forged.
  const auto genuine =
      std::remove_if(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(taken),
                     [&](const link::InFrame& frame) { return sender_.is_own(frame.from.to); });
  const auto count = static_cast<std::size_t>(genuine - frames.begin());
  counters_.refused_garbage += taken - count;
  if (!due || count == frames.size()) return count;
  quiet_polls_ = 0;
  const std::size_t more = socket_.receive(frames.subspan(count));
  if (more != 0) eager_polls_ = kEagerPolls;
  return count + more;
}

/// Why the interface cannot do it, with the way out; empty if it can.
std::string obstacle(const SocketAddress& name, const Interface& interface) {
  const std::string what = "packet link on " + interface.name + ": ";
  if (interface.loopback) return what + "loopback carries no Ethernet frames; use the udp link for it";
  if (!interface.has_ethernet)
    return what + "not an Ethernet interface; use the udp link or name another interface";
  if (!interface.up)
    return what + "the interface is down; bring it up (ip link set " + interface.name + " up)";
  const bool own = std::any_of(interface.addresses.begin(), interface.addresses.end(),
                               [&](const SocketAddress& address) { return address.same_host(name); });
  if (!own) {
    return what + "the endpoint's address " + name.ip_text() +
           " does not belong to it; bind the endpoint to an address of the interface";
  }
  return {};
}

std::string refusal(const Interface& interface, int error) {
  const std::string what = "packet link on " + interface.name + ": ";
  switch (error) {
    case EPERM:
    case EACCES:
      return what +
             "raw sockets need CAP_NET_RAW; run as root or grant the capability (setcap cap_net_raw+ep "
             "on the program)";
    case ENOMEM: return what + "no memory for the receive ring; ask for fewer slots";
    case EAFNOSUPPORT: return what + "the kernel has no packet sockets (CONFIG_PACKET)";
    default: return what + std::strerror(error);
  }
}

std::vector<SocketAddress> own_addresses() {
  std::vector<SocketAddress> own;
  for (const Interface& interface : list_interfaces()) {
    own.insert(own.end(), interface.addresses.begin(), interface.addresses.end());
  }
  return own;
}

std::string why_no_ring(const Interface& interface, std::size_t rings) {
  if (rings == 0) return "FI_CLUSTER_RINGS=0";
  return "all " + std::to_string(rings) + " FI_CLUSTER_RINGS of " + interface.name + " are taken";
}

}  // namespace

std::unique_ptr<link::Link> open_packet_link(std::shared_ptr<UdpPort> port, const Interface& interface,
                                             const PacketSettings& settings, const Environment& environment,
                                             std::string& reason) {
  reason = obstacle(port->name(), interface);
  if (!reason.empty()) return nullptr;
  int error = 0;
  const SocketAddress::Family family = port->name().family();
  const std::size_t frame_max = frame_max_within(interface.mtu, family);
  auto raw = PacketSender::open(interface.index, {interface.mac, port->name()},
                                {settings.qdisc_bypass && !interface.shaped, settings.offload, frame_max},
                                environment.counters, error);
  std::optional<Descriptor> claim;
  std::unique_ptr<PacketRing> frames;
  if (raw) claim = claim_ring(interface.index, family, settings.rings);
  if (claim)
    frames =
        PacketRing::open(interface.index, port->name(), settings.ring_slots, environment.counters, error);
  // Last, so that no frame falls between socket and ring; one in both is a duplicate, which is fine.
  if (frames && !port->ignore_interface(interface.index)) error = ENOPROTOOPT;
  if (error != 0) {
    reason = refusal(interface, error);
    return nullptr;
  }
  if (claim) {
    return std::make_unique<RingPacketLink>(std::move(port), frame_max, std::move(raw), own_addresses(),
                                            Ring{std::move(*claim), std::move(frames)}, environment.counters);
  }
  reason = why_no_ring(interface, settings.rings);
  return std::make_unique<SocketPacketLink>(std::move(port), frame_max, std::move(raw), interface.index,
                                            environment);
}

}  // namespace cluster::os
