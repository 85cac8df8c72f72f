#include "os/packet_link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "os/packet_ring.h"
#include "os/packet_sender.h"
#include "os/receive_queues.h"
#include "os/ring_claim.h"
#include "os/udp_link.h"
#include "os/udp_receiver.h"
#include "os/udp_sender.h"

namespace cluster::os {
namespace {

constexpr std::size_t kSocketBuffers = 4;  // the socket is the side entrance here
constexpr unsigned kQuietPolls = 64;
constexpr unsigned kEagerPolls = 256;

class PacketLink final : public link::Link {
 public:
  PacketLink(std::shared_ptr<UdpPort> port, const Interface& interface, Descriptor claim,
             std::unique_ptr<PacketRing> ring, std::unique_ptr<PacketRing> shortcut,
             std::unique_ptr<PacketSender> sender, std::vector<SocketAddress> own,
             const Environment& environment)
      : port_(port),
        frame_max_(frame_max_within(interface.mtu, port->name().family())),
        claim_(std::move(claim)),
        ring_(std::move(ring)),
        shortcut_(std::move(shortcut)),
        sender_(std::move(sender)),
        own_(std::move(own)),
        counters_(environment.counters),
        socket_sender_(port, environment.counters),
        socket_receiver_(std::move(port), kSocketBuffers, UdpReceiver::Timestamps::no, environment) {}

  const char* name() const override { return "packet"; }
  std::size_t frame_max() const override { return frame_max_; }
  bool has_ethertype_path() const override { return shortcut_ != nullptr; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override;
  std::size_t receive_burst(std::span<link::InFrame> frames) override;
  std::size_t read_path_errors(std::span<link::PathError> path_errors) override {
    ring_->clear_errors();
    if (shortcut_) shortcut_->clear_errors();
    return port_->read_path_errors(path_errors);
  }
  std::vector<int> descriptors() const override {
    std::vector<int> all{ring_->descriptor(), port_->socket()};
    if (shortcut_) all.push_back(shortcut_->descriptor());
    return all;
  }
  void before_sleep() override { eager_polls_ = std::max(eager_polls_, 2u); }

 private:
  /// True if frames on this path are written to the wire here.
  bool raw(const link::Path& path) const { return path.mac_known && !own(path.to); }
  bool own(const SocketAddress& name) const {
    return std::any_of(own_.begin(), own_.end(),
                       [&](const SocketAddress& address) { return address.same_host(name); });
  }
  std::size_t receive_rings(std::span<link::InFrame> frames);
  bool socket_is_due();

  std::shared_ptr<UdpPort> port_;
  std::size_t frame_max_;
  Descriptor claim_;  ///< to the ring; given back after it
  std::unique_ptr<PacketRing> ring_;
  std::unique_ptr<PacketRing> shortcut_;  ///< null if there is none
  std::unique_ptr<PacketSender> sender_;
  std::vector<SocketAddress> own_;
  Counters& counters_;
  UdpSender socket_sender_;
  UdpReceiver socket_receiver_;
  unsigned eager_polls_ = kEagerPolls;  ///< left to ask the socket each time
  unsigned quiet_polls_ = 0;            ///< since the socket was asked
};

std::size_t PacketLink::send_burst(std::span<const link::OutFrame> frames) {
  std::size_t gone = 0;
  while (gone < frames.size()) {
    const bool raw_now = raw(*frames[gone].path);
    std::size_t end = gone + 1;
    while (end < frames.size() &&
           (frames[end].path == frames[gone].path || raw(*frames[end].path) == raw_now)) {
      ++end;
    }
    const auto same_way = frames.subspan(gone, end - gone);
    const std::size_t taken = raw_now ? sender_->send(same_way) : socket_sender_.send(same_way);
    gone += taken;
    if (taken < same_way.size()) break;
  }
  return gone;
}

bool PacketLink::socket_is_due() {
  if (eager_polls_ > 0) {
    --eager_polls_;
    return true;
  }
  return ++quiet_polls_ >= kQuietPolls;
}

std::size_t PacketLink::receive_rings(std::span<link::InFrame> frames) {
  if (!shortcut_) return ring_->receive(frames);
  // Both have their turn, however full one is.
  const std::size_t most = ring_->waiting() ? frames.size() - frames.size() / 4 : frames.size();
  const std::size_t small = shortcut_->receive(frames.first(most));
  return small + ring_->receive(frames.subspan(small));
}

std::size_t PacketLink::receive_burst(std::span<link::InFrame> frames) {
  const bool due = socket_is_due();
  // Even a ring that is never empty leaves the socket its turn.
  const std::size_t reserved = due && frames.size() > kSocketBuffers ? kSocketBuffers : 0;
  const std::size_t taken = receive_rings(frames.first(frames.size() - reserved));
  // What this node sends to itself comes by the socket; on the wire its name is forged.
  const auto genuine = std::remove_if(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(taken),
                                      [&](const link::InFrame& frame) { return own(frame.from.to); });
  const auto count = static_cast<std::size_t>(genuine - frames.begin());
  counters_.refused_malformed += taken - count;
  if (!due || count == frames.size()) return count;
  quiet_polls_ = 0;
  const std::size_t more = socket_receiver_.receive(frames.subspan(count));
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

bool has_single_receive_queue(const Interface& interface) {
  const bool queues_are_its_own =
      interface.kind == Interface::Kind::physical || interface.kind == Interface::Kind::veth;
  return queues_are_its_own && receive_queues(interface.name) == 1;
}

/// Whoever cannot have it does without.
std::unique_ptr<PacketRing> open_shortcut(const UdpPort& port, const Interface& interface,
                                          const PacketSettings& settings, const Environment& environment) {
  int error = 0;
  auto ring = PacketRing::open(interface.index, port.name(), RingShape::of_small_frames(settings.ring_slots),
                               environment, error);
  if (ring == nullptr) {
    environment.log.warn(
        "small frames on %s go by IP: no ring for EtherType 0x88b5 (%s); FI_CLUSTER_ETHERTYPE=no "
        "does without",
        interface.name.c_str(), std::strerror(error));
  }
  return ring;
}

}  // namespace

std::unique_ptr<link::Link> open_packet_link(std::shared_ptr<UdpPort> port, const Interface& interface,
                                             const PacketSettings& settings, const Environment& environment,
                                             std::string& reason) {
  reason = obstacle(port->name(), interface);
  if (!reason.empty()) return nullptr;
  int error = 0;
  const Origin origin{interface.mac, port->name()};
  const bool wants_shortcut = settings.shortcut ? *settings.shortcut : has_single_receive_queue(interface);
  auto sender = PacketSender::open(interface.index, origin,
                                   {settings.qdisc_bypass && !interface.shaped, settings.offload,
                                    wants_shortcut, frame_max_within(interface.mtu, port->name().family())},
                                   environment.counters, error);
  std::optional<Descriptor> claim = Descriptor();
  if (sender && settings.rings) claim = claim_ring(interface.index, port->name().family(), *settings.rings);
  if (!claim) {
    reason = "all " + std::to_string(*settings.rings) + " receive rings of " + interface.name +
             " are in use (FI_CLUSTER_LINK=packet has no such limit)";
    return nullptr;
  }
  std::unique_ptr<PacketRing> ring;
  std::unique_ptr<PacketRing> shortcut;
  if (sender) {
    const auto shape = RingShape::of_super_frames(port->name().family(), settings.ring_slots);
    ring = PacketRing::open(interface.index, port->name(), shape, environment, error);
  }
  if (ring && wants_shortcut) shortcut = open_shortcut(*port, interface, settings, environment);
  // Last, so that no frame falls between socket and ring; one in both is a duplicate, which is fine.
  if (ring && !port->ignore_interface(interface.index)) error = ENOPROTOOPT;
  if (error != 0) {
    reason = refusal(interface, error);
    return nullptr;
  }
  return std::make_unique<PacketLink>(std::move(port), interface, std::move(*claim), std::move(ring),
                                      std::move(shortcut), std::move(sender), own_addresses(), environment);
}

}  // namespace cluster::os
